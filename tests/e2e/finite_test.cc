// Values that become NaN or infinite, through the real server: a LoRA that overflows on the demo
// model, and a checkpoint with one NaN weight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "tests/e2e/test_server.h"
#include "tests/support/nan_tensor.h"

namespace wan::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kServing = 1;  // of health.proto

// A LoRA of rank 1 for the first feed-forward matrix of the demo model. Both factors are finite,
// but their product is not.
void WriteOverflowingLora(const std::string& path) {
  constexpr int kWidth = 256;
  constexpr int kRows = 896;
  const std::string module = "diffusion_model.blocks.0.ffn.0.";
  const std::string header =
      R"({")" + module + R"(lora_down.weight":{"dtype":"F32","shape":[1,256],"data_offsets":[0,)" +
      std::to_string(kWidth * 4) + R"(]},")" + module +
      R"(lora_up.weight":{"dtype":"F32","shape":[896,1],"data_offsets":[)" +
      std::to_string(kWidth * 4) + "," + std::to_string((kWidth + kRows) * 4) + "]}}";
  const uint64_t size = header.size();
  const std::vector<float> factors(kWidth + kRows, 1e25F);
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), sizeof(size)) << header
      << std::string(reinterpret_cast<const char*>(factors.data()), factors.size() * sizeof(float));
}

std::string ReasonOf(const google::rpc::Status& error) {
  google::rpc::ErrorInfo info;
  for (const google::protobuf::Any& detail : error.details()) {
    if (detail.UnpackTo(&info)) break;
  }
  return info.reason();
}

TEST(FiniteTest, AJobWhoseLoraOverflowsFailsAndTheNextOneHasTheUsualBits) {
  const TemporaryFolder folder;
  const std::string lora = folder.File("loud.safetensors");
  WriteOverflowingLora(lora);
  TestServer server({.data_dir = folder.path(),
                     .models = {"demo=" WAN_DEMO_MODEL},
                     .flags = {"--lora", "demo/loud=" + lora}});
  wan::v1::GenerationRequest request = TinyRequest();
  request.set_model("demo");
  request.set_width(192);
  request.set_height(192);
  request.clear_outputs();
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  const auto latents = [&] {
    const wan::v1::Job job = server.Await(server.Submit(request).name());
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
    return job.artifacts_size() == 1 ? server.Download(job.artifacts(0).name()) : "";
  };
  const std::string before = latents();

  wan::v1::GenerationRequest loud = request;
  wan::v1::LoraScale& scaled = *loud.add_loras();
  scaled.set_name("loud");
  scaled.set_scale(0.5);
  const wan::v1::Job failed = server.Await(server.Submit(loud).name());
  EXPECT_EQ(failed.state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_EQ(failed.error().code(), static_cast<int>(grpc::StatusCode::DATA_LOSS));
  EXPECT_EQ(ReasonOf(failed.error()), "NOT_FINITE");
  EXPECT_THAT(failed.error().message(),
              AllOf(HasSubstr("the latents of step 1 of 3 (stage Step_0_Inference) are not finite"),
                    HasSubstr("the job's LoRAs are loud with scale 0.5: try it without them")));
  EXPECT_EQ(failed.attempt(), 1) << "the same once more would be no better";
  EXPECT_EQ(failed.artifacts_size(), 0);

  EXPECT_EQ(server.HealthNow(), kServing);
  EXPECT_TRUE(latents() == before);
  EXPECT_THAT(server.Metrics(),
              HasSubstr(R"(wan_job_failures_total{model="demo",reason="NOT_FINITE"} 1)"));
  EXPECT_THAT(server.AwaitLog("loud with scale"), HasSubstr(R"("level":"error")"));
}

TEST(FiniteTest, ACheckpointWithANanWeightIsFailedAndOthersServe) {
  const TemporaryFolder folder;
  const std::filesystem::path copy = std::filesystem::path(folder.path()) / "checkpoint";
  std::filesystem::copy(std::filesystem::path(WAN_CHECKPOINT_DIR) / "ti2v-5b" / "diffusers", copy,
                        std::filesystem::copy_options::recursive);
  support::MakeFirstValueNan(
      copy / "transformer/diffusion_pytorch_model-00002-of-00002.safetensors",
      "blocks.1.ffn.net.2.bias");
  TestServer server(
      {.data_dir = folder.path(), .models = {"bad=" + copy.string(), ServerOptions::TinyModel()}});
  grpc::ClientContext context;
  wan::v1::ListModelsResponse models;
  ASSERT_TRUE(server.models().ListModels(&context, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 2);
  const wan::v1::Model& bad = models.models(0);
  EXPECT_EQ(bad.state(), wan::v1::MODEL_STATE_FAILED);
  EXPECT_EQ(ReasonOf(bad.error()), "NOT_FINITE");
  EXPECT_THAT(bad.error().message(),
              AllOf(HasSubstr("the warm-up failed: the latents of step 1"),
                    HasSubstr("a weight of the checkpoint is probably damaged")));
  EXPECT_EQ(server.HealthNow("wan.v1.VideoGeneration/models/bad"), 2) << "NOT_SERVING";
  EXPECT_EQ(server.Await(server.Submit(TinyRequest()).name()).state(),
            wan::v1::JOB_STATE_COMPLETED);
}

}  // namespace
}  // namespace wan::e2e
