// The A14B models through the real server: two experts, VAE 2.1, an image as condition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::ElementsAre;
using wan::v1::Event;
using Request = wan::v1::GenerationRequest;

std::string Checkpoint(const std::string& path) {
  return std::string(WAN_CHECKPOINT_DIR) + "/" + path;
}

// 90 x 150 pixels.
std::string NarrowImage() {
  return ReadWholeFile(std::string(WAN_GOLDEN_DIR) + "/pipelines/i2v-crop.png");
}

Request T2vRequest() {
  Request request = TinyRequest(/*steps=*/4);
  request.set_model("t2v");
  // A multiple of 16, which TI2V-5B would refuse.
  request.set_width(48);
  request.set_height(64);
  request.set_shift(3);  // timesteps 999 899 749 499
  return request;
}

Request I2vRequest() {
  Request request = T2vRequest();
  request.set_model("i2v");
  request.set_image(NarrowImage());
  request.set_width(80);
  request.set_height(80);
  return request;
}

class A14bTest : public testing::Test {
 protected:
  A14bTest() {
    // The tiny T2V-A14B as a few-step checkpoint.
    namespace fs = std::filesystem;
    const fs::path few_step = folder_.File("few_step");
    fs::copy(Checkpoint("t2v-a14b/original"), few_step, fs::copy_options::recursive);
    std::ofstream(few_step / "few_step.json")
        << R"({"denoising_step_list": [1000, 750, 500, 250], "sample_shift": 5.0})";
    server_.emplace(ServerOptions{
        .data_dir = folder_.path(),
        .models = {"t2v=" + Checkpoint("t2v-a14b/diffusers"),
                   "i2v=" + Checkpoint("i2v-a14b/original"), "fast=" + few_step.string()}});
  }

  std::vector<std::string> ExpertsOf(const std::string& job) {
    std::vector<std::string> experts;
    for (const Event& event : server_->Watch(job)) {
      if (event.has_step_progress()) experts.push_back(event.step_progress().expert());
    }
    return experts;
  }

  // ffprobe's facts of the job's mp4.
  std::string Probe(const wan::v1::Job& job) {
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
    if (job.artifacts_size() != 1) return "";
    const std::string path = folder_.File("video.mp4");
    std::ofstream(path, std::ios::binary) << server_->Download(job.artifacts(0).name());
    const ProcessResult probe = RunProcess(
        {"ffprobe", "-v", "error", "-count_frames", "-show_entries",
         "stream=codec_name,width,height,r_frame_rate,nb_read_frames", "-of", "csv=p=0", path});
    EXPECT_EQ(probe.exit_code, 0) << probe.err;
    return probe.out;
  }

  TemporaryFolder folder_;
  std::optional<TestServer> server_;
};

TEST_F(A14bTest, TextToVideoRunsBothExperts) {
  Request request = T2vRequest();
  request.add_guidance_scale(3);
  request.add_guidance_scale(4);
  const wan::v1::Job job = server_->Await(server_->Submit(request).name());
  // 16 frames a second, as upstream.
  EXPECT_EQ(Probe(job), "h264,48,64,16/1,5\n");
  EXPECT_THAT(ExpertsOf(job.name()), ElementsAre("high", "high", "low", "low"));
  EXPECT_THAT(job.request().guidance_scale(), ElementsAre(3, 4));
}

// The rule makes 48x96 of the area and the image's ratio; applied again it would make 48x80.
TEST_F(A14bTest, ImageToVideoHasTheSizeThatWasPlanned) {
  const wan::v1::Job job = server_->Await(server_->Submit(I2vRequest()).name());
  EXPECT_EQ(job.request().width(), 48);
  EXPECT_EQ(job.request().height(), 96);
  EXPECT_EQ(Probe(job), "h264,48,96,16/1,5\n");
  EXPECT_THAT(ExpertsOf(job.name()), ElementsAre("high", "low", "low", "low"));
}

TEST_F(A14bTest, AFewStepModelTakesItsOwnSteps) {
  Request request = T2vRequest();
  request.set_model("fast");
  request.clear_steps();
  request.clear_shift();
  const wan::v1::Job job = server_->Await(server_->Submit(request).name());
  EXPECT_EQ(Probe(job), "h264,48,64,16/1,5\n");
  EXPECT_EQ(job.request().steps(), 4);
  EXPECT_EQ(job.request().solver(), wan::v1::SOLVER_EULER);
  EXPECT_THAT(ExpertsOf(job.name()), ElementsAre("high", "high", "low", "low"));
}

TEST_F(A14bTest, ModelsAreDescribed) {
  grpc::ClientContext context;
  wan::v1::ListModelsResponse response;
  ASSERT_TRUE(server_->models().ListModels(&context, {}, &response).ok());
  for (const wan::v1::Model& model : response.models()) {
    SCOPED_TRACE(model.name());
    EXPECT_EQ(model.state(), wan::v1::MODEL_STATE_READY);
    EXPECT_EQ(model.components_size(), 4);
    const bool is_i2v = model.name() == "models/i2v";
    EXPECT_EQ(model.family(), is_i2v ? "i2v-a14b" : "t2v-a14b");
    EXPECT_EQ(model.accepts_image(), is_i2v);
  }
}

TEST_F(A14bTest, BadRequestsNameTheirFields) {
  const struct {
    const char* name;
    Request request;
    std::function<void(Request&)> spoil;
    std::vector<std::string> fields;
  } cases[] = {
      {"no image for image to video", I2vRequest(), [](Request& r) { r.clear_image(); }, {"image"}},
      {"a broken image", I2vRequest(), [](Request& r) { r.set_image("hello"); }, {"image"}},
      {"an image too narrow for the area",
       I2vRequest(),
       [](Request& r) {
         r.set_width(16);
         r.set_height(16);
       },
       {"image"}},
      {"an image for text to video",
       T2vRequest(),
       [](Request& r) { r.set_image(NarrowImage()); },
       {"image"}},
      {"half a token wide", T2vRequest(), [](Request& r) { r.set_width(40); }, {"width"}},
      {"one latent high", T2vRequest(), [](Request& r) { r.set_height(8); }, {"height"}},
      {"both off the grid",
       T2vRequest(),
       [](Request& r) {
         r.set_width(100);
         r.set_height(20);
       },
       {"width", "height"}},
      {"frames", T2vRequest(), [](Request& r) { r.set_num_frames(6); }, {"num_frames"}},
      {"frames of image to video",
       I2vRequest(),
       [](Request& r) { r.set_num_frames(4); },
       {"num_frames"}},
      {"three scales for two experts",
       T2vRequest(),
       [](Request& r) {
         for (int i = 0; i < 3; ++i) r.add_guidance_scale(3);
       },
       {"guidance_scale"}},
      {"the high-noise scale",
       T2vRequest(),
       [](Request& r) {
         r.add_guidance_scale(3);
         r.add_guidance_scale(101);
       },
       {"guidance_scale[1]"}},
      {"other steps than the distilled ones, with guidance",
       T2vRequest(),
       [](Request& r) {
         r.set_model("fast");
         r.set_steps(20);
         r.add_guidance_scale(4);
         r.set_negative_prompt("blurry");
         r.set_solver(wan::v1::SOLVER_UNIPC);
       },
       {"steps", "guidance_scale[0]", "negative_prompt", "solver"}},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.name);
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = bad.request;
    bad.spoil(*create.mutable_request());
    grpc::ClientContext context;
    wan::v1::Job job;
    const grpc::Status status = server_->videos().CreateJob(&context, create, &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(ViolatedFields(status), testing::UnorderedElementsAreArray(bad.fields))
        << status.error_message();
  }
}

}  // namespace
}  // namespace wan::e2e
