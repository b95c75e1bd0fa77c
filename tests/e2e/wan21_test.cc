// Wan2.1's text to video, and a distilled checkpoint that is recognised, through the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Wan21Test : public testing::Test {
 protected:
  Wan21Test() {
    const std::string golden = WAN_CHECKPOINT_DIR;
    // The tiny TI2V-5B as FastWan, which differs from it in the class of its pipeline.
    const fs::path fast = folder_.File("fast");
    fs::copy(golden + "/ti2v-5b/diffusers", fast, fs::copy_options::recursive);
    std::ostringstream index;
    index << std::ifstream(fast / "model_index.json").rdbuf();
    std::string text = index.str();
    const std::string plain = "\"WanPipeline\"";
    text.replace(text.find(plain), plain.size(), "\"WanDMDPipeline\"");
    std::ofstream(fast / "model_index.json") << text;
    server_.emplace(ServerOptions{
        .data_dir = folder_.path(),
        .models = {"small=" + golden + "/wan2.1-t2v-1.3b/original", "fast=" + fast.string()}});
  }

  wan::v1::Job Run(const std::string& model, int64_t seed) {
    wan::v1::GenerationRequest request = TinyRequest(/*steps=*/4, seed);
    request.set_model(model);
    if (model == "fast") request.clear_steps();
    return server_->Await(server_->Submit(request).name());
  }

  TemporaryFolder folder_;
  std::optional<TestServer> server_;
};

TEST_F(Wan21Test, OneExpertMakesAVideo) {
  const wan::v1::Job job = Run("small", 7);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
  EXPECT_EQ(job.request().solver(), wan::v1::SOLVER_UNIPC);
  EXPECT_EQ(job.request().fps(), 16);
  EXPECT_THAT(job.request().guidance_scale(), ElementsAre(5));
}

TEST_F(Wan21Test, ARecognisedCheckpointNeedsNoSetting) {
  const wan::v1::Job job = Run("fast", 7);
  ASSERT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
  EXPECT_EQ(job.request().steps(), 3);
  EXPECT_EQ(job.request().solver(), wan::v1::SOLVER_LCM);
  EXPECT_THAT(job.request().guidance_scale(), ElementsAre(1));
  // The noise of the steps belongs to the seed as the first does.
  const std::string video = server_->Download(job.artifacts(0).name());
  EXPECT_EQ(server_->Download(Run("fast", 7).artifacts(0).name()), video);
  EXPECT_NE(server_->Download(Run("fast", 8).artifacts(0).name()), video);

  const std::string says =
      "FastWan, by the pipeline class WanDMDPipeline: 3 steps of lcm without guidance";
  EXPECT_THAT(server_->AwaitLog("distilled checkpoint"), HasSubstr(says));
  grpc::ClientContext context;
  wan::v1::ListModelsResponse response;
  ASSERT_TRUE(server_->models().ListModels(&context, {}, &response).ok());
  for (const wan::v1::Model& model : response.models()) {
    const bool is_fast = model.name() == "models/fast";
    EXPECT_EQ(model.family(), is_fast ? "ti2v-5b" : "wan2.1-t2v-1.3b");
    EXPECT_EQ(model.distillation(), is_fast ? says : "");
  }
}

}  // namespace
}  // namespace wan::e2e
