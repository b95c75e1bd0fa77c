#include "server/conversion/report.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "engine/api/residency.h"

namespace wan::server {
namespace {

TEST(ReportTest, ThePlanHasWhatWasDecided) {
  ModelDescription model;
  model.components = {{ModelComponent::kTextEncoder, 100, 10, "cpu", "bf16"},
                      {ModelComponent::kVae, 50, 5, "cuda:0", "fp32"}};
  GenerationPlan plan;
  plan.residency = {{ModelComponent::kTextEncoder, ResidencyPolicy::kCpu},
                    {ModelComponent::kVae, ResidencyPolicy::kStream}};
  plan.stages = {
      {.stage = StageKind::kTi2vPreprocess},
      {.stage = {StageKind::kStepInference, 3},
       .flops = 7,
       .weight_bytes = 8,
       .activation_bytes = 9,
       .workspace_bytes = 2,
       .host_bytes = 4},
  };
  plan.batched_guidance = true;
  plan.eight_bits = true;
  plan.exact_blocks = {0, 5};
  plan.steps = {{.reuses_blocks = false}, {.reuses_blocks = true}, {}, {.reuses_blocks = true}};
  plan.decode_tiles = {2, 3};
  plan.tokens = 11;
  plan.device_memory_bytes = 12;
  plan.peak_device_bytes = 13;
  plan.blocks = 30;
  plan.block_operators = {{"elementwise", 0, 14}, {"self_attention", 15, 16}};
  EXPECT_EQ(ReportOf(plan, model).ShortDebugString(),
            "components { name: \"text_encoder\" residency: \"cpu\" weight_bytes: 100 "
            "dtype: \"bf16\" parameters: 10 } "
            "components { name: \"vae\" residency: \"stream\" weight_bytes: 50 dtype: \"fp32\" "
            "parameters: 5 } "
            "stages { stage: \"TI2V_Preprocess\" } "
            "stages { stage: \"Step_3_Inference\" flops: 7 weight_bytes: 8 activation_bytes: 7 "
            "workspace_bytes: 2 host_bytes: 4 } "
            "batched_guidance: true guided: true decode_tile_rows: 2 decode_tile_columns: 3 "
            "tokens: 11 device_memory_limit_bytes: 12 peak_device_bytes: 13 blocks: 30 "
            "block_operators { name: \"elementwise\" bytes: 14 } "
            "block_operators { name: \"self_attention\" flops: 15 bytes: 16 } "
            "eight_bits: true reused_steps: 1 reused_steps: 3 "
            "exact_blocks: 0 exact_blocks: 5");
}

TEST(ReportTest, TheSystemHasWhatIsKnown) {
  SystemFacts facts;
  facts.libtorch_version = "2.11.0";
  facts.cpu_name = "a CPU";
  facts.cpu_cores = 3;
  EXPECT_EQ(ToProto(facts).ShortDebugString(),
            "libtorch_version: \"2.11.0\" cpu_name: \"a CPU\" cpu_cores: 3");
  facts.cuda_version = "12.8";
  facts.cudnn_version = "91900";
  facts.memory_total_bytes = 4;
  facts.gpu = {.name = "a GPU",
               .uuid = "GPU-1",
               .driver_version = "580",
               .memory_total_bytes = 5,
               .power_limit_watts = 6,
               .sm_clock_max_mhz = 7,
               .memory_clock_max_mhz = 8,
               .has_gpm = true};
  EXPECT_EQ(ToProto(facts).ShortDebugString(),
            "libtorch_version: \"2.11.0\" cuda_version: \"12.8\" cudnn_version: \"91900\" "
            "cpu_name: \"a CPU\" cpu_cores: 3 memory_total_bytes: 4 "
            "gpu { name: \"a GPU\" uuid: \"GPU-1\" memory_total_bytes: 5 driver_version: \"580\" "
            "power_limit_watts: 6 sm_clock_max_mhz: 7 memory_clock_max_mhz: 8 has_gpm: true }");
}

TEST(ReportTest, TheTimelineSaysWhenItsIntervalsBegin) {
  TimelinePoint point{absl::FromUnixSeconds(5), 0.25, {}};
  point.sample.power_watts = 6;
  const auto timeline = ToProto(std::vector<TimelinePoint>{point, point});
  ASSERT_EQ(timeline.size(), 2);
  EXPECT_EQ(timeline[1].ShortDebugString(), "time { seconds: 5 } power_watts: 6");
}

// The bytes that the version before this contract stored.
TEST(ReportTest, AReportFromBeforeIsReadAsItIs) {
  const std::string stored = absl::HexStringToBytes(
      "0a066a6f62732f6110021a420a10537465705f305f496e666572656e63651202080519000000000000f83f3007"
      "590000000000004940610000000000c052406a046f6e6c7979000000000000084022016d2a06637564613a3032"
      "04626631363a0d6a6f62732f612f7265706f7274");
  wan::v1::JobReport report;
  ASSERT_TRUE(report.ParseFromString(stored));
  EXPECT_EQ(report.ShortDebugString(),
            "job: \"jobs/a\" attempt: 2 stages { stage: \"Step_0_Inference\" "
            "start_time { seconds: 5 } seconds: 1.5 gpu_memory_peak_bytes: 7 "
            "sm_activity_percent: 50 load: 75 expert: \"only\" process_cpu_percent: 3 } "
            "model: \"m\" device: \"cuda:0\" dtype: \"bf16\" name: \"jobs/a/report\"");
  EXPECT_FALSE(report.has_plan());
  EXPECT_FALSE(report.stages(0).has_energy_joules());
}

}  // namespace
}  // namespace wan::server
