#include "client/reports/bottlenecks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::HasSubstr;

Ceilings TestCeilings() {
  const absl::StatusOr<Ceilings> ceilings = ParseCeilings(kCeilingsJson, "test");
  EXPECT_TRUE(ceilings.ok()) << ceilings.status();
  return *ceilings;
}

MeasuredRun RunWith(wan::v1::JobReport report, const std::string& variant = "") {
  return {"case", variant, 1, std::move(report), std::nullopt};
}

const Bottleneck* Find(const std::vector<Bottleneck>& found, const std::string& location) {
  for (const Bottleneck& one : found) {
    if (one.location.starts_with(location)) return &one;
  }
  return nullptr;
}

TEST(CeilingsTest, FloorOfAForward) {
  const Ceilings ceilings = TestCeilings();
  const wan::v1::PlanReport plan = GpuReport().plan();
  // A block: 20 TFLOP at 500 and 30 at 600 TFLOP/s; ten blocks have 500.01 TFLOP.
  const double block = 20.0 / 500 + 30.0 / 600;
  EXPECT_NEAR(*ForwardFloor(ceilings, plan, "bf16", 500.01e12), 10 * block, 1e-9);
  EXPECT_EQ(ForwardFloor(ceilings, plan, "fp32", 500e12), std::nullopt);
  EXPECT_NEAR(*FloorSeconds(ceilings, plan.block_operators(2), plan, "bf16"), 5e9 / 4e12, 1e-12);
  EXPECT_TRUE(AreOf(ceilings, GpuReport()));
  EXPECT_FALSE(AreOf(ceilings, wan::v1::JobReport()));
}

TEST(CeilingsTest, BlocksOfEightBitsHaveTheirOwnFloor) {
  Ceilings ceilings = TestCeilings();
  wan::v1::PlanReport plan = GpuReport().plan();
  plan.set_eight_bits(true);
  EXPECT_EQ(ForwardFloor(ceilings, plan, "bf16", 500.01e12), std::nullopt) << "not measured";
  ceilings.products["fp8"] = 1200e12;
  ceilings.attention["fp8"] = 1000e12;
  EXPECT_NEAR(*ForwardFloor(ceilings, plan, "bf16", 500.01e12), 10 * (20.0 / 1000 + 30.0 / 1200),
              1e-9);
  wan::v1::OperatorClass text = plan.block_operators(0);
  text.set_name("cross_attention");
  EXPECT_NEAR(*FloorSeconds(ceilings, text, plan, "bf16"), 20.0 / 500, 1e-9);
}

TEST(CeilingsTest, RefusesOtherFiles) {
  EXPECT_THAT(std::string(ParseCeilings("{}", "c.json").status().message()),
              HasSubstr("c.json has no ceilings: its format is not wanserve-ceilings"));
  EXPECT_THAT(std::string(ParseCeilings("[", "c.json").status().message()),
              HasSubstr("not a JSON object"));
  EXPECT_THAT(
      std::string(ParseCeilings(R"({"format": "wanserve-ceilings", "version": 1})", "c.json")
                      .status()
                      .message()),
      HasSubstr("its field device is missing"));
  EXPECT_TRUE(absl::IsNotFound(ReadCeilings("/nowhere/c.json").status()));
}

TEST(BottlenecksTest, RankedBySecondsThatTheyWouldSave) {
  const Ceilings ceilings = TestCeilings();
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(GpuReport()), &ceilings, {});
  ASSERT_GE(found.size(), 3u);
  EXPECT_THAT(found[0].location, HasSubstr("the forward without the prompt"));
  EXPECT_NEAR(*found[0].saves, 4 * 1.4, 1e-9);
  // Eight forwards of 1.4 s, which could take 0.9 s each.
  const Bottleneck* floor = Find(found, "Step_*_Inference, the forwards");
  ASSERT_NE(floor, nullptr);
  EXPECT_NEAR(*floor->saves, 8 * (1.4 - 0.9), 0.001);
  const Bottleneck* file = Find(found, "Video_Encoding");
  ASSERT_NE(file, nullptr);
  EXPECT_NEAR(*file->saves, 1, 1e-6);
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_GE(found[i - 1].saves.value_or(-1), found[i].saves.value_or(-1));
  }
}

TEST(BottlenecksTest, NothingIsClaimedOfTheFloorWithoutCeilings) {
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(GpuReport()), nullptr, {});
  EXPECT_EQ(Find(found, "Step_*_Inference, the forwards"), nullptr);
}

TEST(BottlenecksTest, SixteenBitsWhereEightWouldDo) {
  constexpr char kWhere[] = "Step_*_Inference, products and self-attention";
  std::vector<Bottleneck> found = FindBottlenecks(RunWith(GpuReport()), nullptr, {});
  ASSERT_NE(Find(found, kWhere), nullptr);
  EXPECT_NEAR(*Find(found, kWhere)->saves, 8 * 1.4 / 2 * 50 / 50.001, 1e-9);
  EXPECT_THAT(Find(found, kWhere)->basis, HasSubstr("at most"));

  Ceilings ceilings = TestCeilings();
  ceilings.products["fp8"] = 1200e12;
  ceilings.attention["fp8"] = 500e12;  // as bf16
  found = FindBottlenecks(RunWith(GpuReport()), &ceilings, {});
  EXPECT_NEAR(*Find(found, kWhere)->saves, 8 * 1.4 * (1 - (0.04 + 0.025) / (0.04 + 0.05)), 1e-9);

  wan::v1::JobReport high = GpuReport(), fp32 = GpuReport(), cpu = GpuReport();
  high.mutable_plan()->set_eight_bits(true);
  fp32.set_dtype("fp32");
  cpu.set_device("cpu");
  for (const wan::v1::JobReport& report : {high, fp32, cpu}) {
    found = FindBottlenecks(RunWith(report), nullptr, {});
    EXPECT_EQ(Find(found, kWhere), nullptr);
  }
}

TEST(BottlenecksTest, AMeasuredQualityReplacesTheEstimate) {
  wan::v1::JobReport high = GpuReport();
  high.mutable_request()->set_quality(wan::v1::QUALITY_HIGH);
  high.mutable_plan()->set_eight_bits(true);
  high.mutable_stages(0)->set_seconds(16);
  const std::vector<MeasuredRun> runs = Twice({RunWith(GpuReport()), RunWith(high, "high")});
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  EXPECT_EQ(Find(found, "Step_*_Inference, products and self-attention")->measured, 4);
}

TEST(BottlenecksTest, OffloadedTextEncoderAndLoadings) {
  wan::v1::JobReport report = GpuReport();
  report.mutable_plan()->mutable_components(0)->set_residency("cpu");
  report.mutable_plan()->mutable_components(1)->set_residency("host");
  for (auto& stage : *report.mutable_stages()) {
    if (stage.stage() == "Step_2_Loading") {
      // Before the step, whose time would hide it otherwise.
      stage.set_seconds(0.3);
      stage.mutable_start_time()->set_seconds(1767225601);
      stage.mutable_start_time()->set_nanos(600000000);
    }
  }
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(report), nullptr, {});
  const Bottleneck* text = Find(found, "T5_Encoding");
  ASSERT_NE(text, nullptr);
  EXPECT_THAT(text->remedy, HasSubstr("text_encoder=resident, which takes 10.0 GiB"));
  const Bottleneck* loading = Find(found, "Step_*_Loading");
  ASSERT_NE(loading, nullptr);
  EXPECT_NEAR(*loading->saves, 0.3, 1e-6);
  EXPECT_THAT(loading->cause, HasSubstr("transformer did not stay on the GPU"));
}

TEST(BottlenecksTest, AMeasuredPairReplacesTheEstimate) {
  wan::v1::JobReport slow = GpuReport();
  slow.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_TF32);
  slow.mutable_stages(0)->set_seconds(23);
  const std::vector<MeasuredRun> runs = Twice({RunWith(slow), RunWith(GpuReport(), "fp16")});
  const Ceilings ceilings = TestCeilings();
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], &ceilings, runs);
  const Bottleneck* decoding = Find(found, "VAE_Decoding");
  ASSERT_NE(decoding, nullptr);
  EXPECT_NEAR(*decoding->saves, 2, 1e-6) << "half of 4 s: TF32 has half the rate";
  EXPECT_NEAR(*decoding->measured, 3, 1e-6);
}

// Every job's first step projects the texts, so that no warm-up saves that.
TEST(BottlenecksTest, TheFirstStepsTextsAreNoColdStart) {
  const auto saved = [](double projection, double forward) {
    wan::v1::JobReport report = GpuReport();
    for (wan::v1::StageReport& stage : *report.mutable_stages()) {
      if (stage.stage() != "Step_0_Inference") continue;
      stage.set_seconds(projection + forward);
      AddPart(stage, "text_projection", 0, projection, 0);
    }
    const MeasuredRun run{"a", "", 1, report, std::nullopt};
    for (const Bottleneck& found : FindBottlenecks(run, nullptr, {run})) {
      if (found.setting == "warm_up") return found.saves.value_or(0);
    }
    return 0.0;
  };
  EXPECT_EQ(saved(2, 3), 0);
  EXPECT_NEAR(saved(2, 5), 2, 1e-9);
}

TEST(BottlenecksTest, SlowStretchesCostWhatTheyTookMore) {
  wan::v1::JobReport report;
  report.set_device("cuda:0");
  for (int i = 0; i < 20; ++i) {
    AddStage(report, absl::StrCat("Step_", i, "_Inference"), 2.0 * i, i < 10 ? 1 : 2);
  }
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(report), nullptr, {});
  const Bottleneck* level = Find(found, "Step_*_Inference, steps at another level");
  ASSERT_NE(level, nullptr);
  EXPECT_NEAR(*level->saves, 10, 1e-9);
}

// A step that reused blocks within a slow stretch is no slow step.
TEST(BottlenecksTest, StepsThatReusedCostNothing) {
  wan::v1::JobReport report;
  report.set_device("cuda:0");
  for (int i = 0; i < 20; ++i) {
    const bool reused = i == 13 || i == 15;
    auto& step = AddStage(report, absl::StrCat("Step_", i, "_Inference"), 2.0 * i,
                          reused ? 0.1 : (i < 10 ? 1 : 2));
    AddPart(step, reused ? "reuse" : "forward", 0, 0.1, 0);
  }
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(report), nullptr, {});
  const Bottleneck* level = Find(found, "Step_*_Inference, steps at another level");
  ASSERT_NE(level, nullptr);
  EXPECT_NEAR(*level->saves, 8, 1e-9);
}

// Guidance 1 has no batch of two forwards either; that is no second setting.
TEST(BottlenecksTest, GuidanceOfOneIsMeasuredThoughTheBatchGoesWithIt) {
  wan::v1::JobReport guided = GpuReport();
  guided.mutable_request()->add_guidance_scale(5);
  guided.mutable_plan()->set_batched_guidance(true);
  wan::v1::JobReport single = GpuReport();
  single.mutable_request()->add_guidance_scale(1);
  single.mutable_plan()->set_guided(false);
  single.mutable_plan()->set_record_forwards(true);
  single.mutable_stages(0)->set_seconds(13);
  const std::vector<MeasuredRun> runs = Twice({RunWith(guided), RunWith(single, "guidance 1")});
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  const Bottleneck* second = Find(found, "Step_*_Inference, the forward without the prompt");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->measured, 7);
}

TEST(BottlenecksTest, OfSeveralRunsTheMedianIsTheMeasurement) {
  wan::v1::JobReport slow = GpuReport();
  slow.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_FP32);
  slow.mutable_stages(0)->set_seconds(23);
  std::vector<MeasuredRun> runs = {RunWith(slow)};
  for (const double seconds : {20.0, 19.0, 18.9}) {
    runs.push_back(RunWith(GpuReport(), "fp16"));
    runs.back().report.mutable_stages(0)->set_seconds(seconds);
  }
  const Bottleneck* decoding = nullptr;
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  ASSERT_NE(decoding = Find(found, "VAE_Decoding"), nullptr);
  EXPECT_EQ(decoding->measured, 4);
}

// The remedy is fp16; what another precision took says nothing of it.
TEST(BottlenecksTest, AnotherValueIsNoMeasurementOfTheRemedy) {
  wan::v1::JobReport slow = GpuReport(), tf32 = GpuReport();
  slow.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_FP32);
  tf32.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_TF32);
  const std::vector<MeasuredRun> runs = {RunWith(slow), RunWith(tf32, "tf32")};
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  const Bottleneck* decoding = Find(found, "VAE_Decoding");
  ASSERT_NE(decoding, nullptr);
  EXPECT_EQ(decoding->measured, std::nullopt);
  // Without ceilings a rate of half is certain.
  EXPECT_NEAR(*decoding->saves, 2, 1e-6);
  EXPECT_THAT(decoding->basis, HasSubstr("estimated without ceilings"));
}

TEST(BottlenecksTest, ServersSettingsThatNoReportHasAreNamedByTheOption) {
  wan::v1::JobReport quick = GpuReport();
  quick.mutable_stages(0)->set_seconds(19.5);
  const std::vector<MeasuredRun> runs =
      Twice({RunWith(GpuReport()), RunWith(quick, "h264_preset: ultrafast")});
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  const Bottleneck* file = Find(found, "Video_Encoding");
  ASSERT_NE(file, nullptr);
  EXPECT_NEAR(*file->measured, 0.5, 1e-9);
}

TEST(BottlenecksTest, AWarmUpIsMeasuredByAColdRun) {
  wan::v1::JobReport cold = GpuReport(), warm = GpuReport();
  for (wan::v1::StageReport& stage : *cold.mutable_stages()) {
    if (stage.stage() == "Step_0_Inference") stage.set_seconds(5);
  }
  (*cold.mutable_request()->mutable_labels())[kWarmLabel] = "no";
  (*warm.mutable_request()->mutable_labels())[kWarmLabel] = "yes";
  warm.mutable_stages(0)->set_seconds(17);
  const std::vector<MeasuredRun> runs = Twice({RunWith(cold), RunWith(warm, "warm")});
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  const Bottleneck* first = Find(found, "Step_0_Inference");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->measured, 3);
}

// One run of each says nothing; the estimate stays, and the basis says why.
TEST(BottlenecksTest, RunsThatAreNotToldApartLeaveTheEstimate) {
  wan::v1::JobReport slow = GpuReport();
  slow.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_FP32);
  slow.mutable_stages(0)->set_seconds(29);
  const std::vector<MeasuredRun> runs = {RunWith(slow), RunWith(GpuReport(), "fp16")};
  const std::vector<Bottleneck> found = FindBottlenecks(runs[0], nullptr, runs);
  const Bottleneck* decoding = Find(found, "VAE_Decoding");
  ASSERT_NE(decoding, nullptr);
  EXPECT_EQ(decoding->measured, std::nullopt);
  EXPECT_NEAR(*GainOf(*decoding).seconds, 2, 1e-6);
  EXPECT_THAT(GainOf(*decoding).basis,
              HasSubstr("; runs with it are not told apart from noise: 1 and 1 measurements"));
}

// A first step beside which other processes worked is no cold start.
TEST(BottlenecksTest, ADisturbedFirstStepSavesNothingThatIsKnown) {
  wan::v1::JobReport report = GpuReport();
  for (wan::v1::StageReport& stage : *report.mutable_stages()) {
    if (!stage.stage().ends_with("_Inference")) continue;
    const bool first = stage.stage() == "Step_0_Inference";
    if (first) stage.set_seconds(5);
    stage.set_cpu_percent(first ? 90 : 42);
    stage.set_process_cpu_percent(40);
  }
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(report), nullptr, {});
  const Bottleneck* first = Find(found, "Step_0_Inference");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->saves, std::nullopt);
  EXPECT_THAT(first->basis, HasSubstr("not told apart from noise: other processes used"));
}

TEST(BottlenecksTest, TilesAndGapsHaveSecondsToSave) {
  wan::v1::JobReport report = GpuReport();
  auto& plan = *report.mutable_plan();
  // 100 frames are 25 latent frames; a token has 32 by 32 pixels, so a latent 16 by 16.
  plan.set_tokens(25 * (1280 / 32) * (704 / 32));
  plan.set_decode_tile_columns(2);
  const std::vector<Bottleneck> found = FindBottlenecks(RunWith(report), nullptr, {});
  const Bottleneck* tiles = Find(found, "VAE_Decoding");
  ASSERT_NE(tiles, nullptr);
  // Two tiles share 128 of 1280 pixels: of 1408 that are decoded.
  EXPECT_NEAR(*tiles->saves, 4 * 128.0 / 1408, 1e-6);
  const Bottleneck* gaps = Find(found, "Between the stages");
  ASSERT_NE(gaps, nullptr);
  EXPECT_NEAR(*gaps->saves, gaps->seconds, 1e-9);
  EXPECT_THAT(gaps->basis, HasSubstr("at most"));
}

}  // namespace
}  // namespace wan::client::reports
