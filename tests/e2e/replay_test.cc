// wanctl receipt and replay with the real programs and a real model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() {
    const std::string original = ServerOptions::TinyModel();
    fs::copy(original.substr(original.find('=') + 1), Model(), fs::copy_options::recursive);
    Start();
  }

  fs::path Model() const { return folder_.path() + "/model"; }

  void Start() {
    server_ = std::make_unique<TestServer>(
        ServerOptions{.data_dir = folder_.path(), .models = {"tiny=" + Model().string()}});
  }

  ProcessResult Wanctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {std::string(WAN_BINARY_DIR) + "/wanctl", "--server",
                                         server_->grpc_address()});
    return RunProcess(arguments);
  }

  // The name of a job that has completed.
  std::string Made(std::vector<std::string> more) {
    more.insert(more.begin(), {"submit", "--model", "tiny", "--prompt", "A cat.", "--size", "64x32",
                               "--frames", "5", "--steps", "2"});
    const ProcessResult submitted = Wanctl(more);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string job = submitted.out.substr(0, submitted.out.find('\n'));
    EXPECT_EQ(Wanctl({"watch", job}).exit_code, 0);
    return job;
  }

  // The receipt once all digests are there, which another thread computes.
  std::string Receipt(const std::string& job) {
    for (;;) {
      const ProcessResult receipt = Wanctl({"receipt", job});
      EXPECT_EQ(receipt.exit_code, 0) << receipt.err;
      if (receipt.exit_code != 0 || receipt.out.find("not known") == std::string::npos) {
        return receipt.out;
      }
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(ReplayTest, ATextsVideoIsMadeAgainAlsoByAnotherProcess) {
  const std::string job = Made({"--artifact", "mp4", "--artifact", "safetensors"});
  EXPECT_THAT(Receipt(job), AllOf(HasSubstr("Wan2.2_VAE.pth"), HasSubstr("config.json"),
                                  HasSubstr("google/umt5-xxl/spiece.model")));
  server_->Terminate();
  Start();
  const ProcessResult replay = Wanctl({"replay", job});
  EXPECT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_THAT(replay.out, AllOf(StartsWith("identical: jobs/"), HasSubstr(job)));
}

TEST_F(ReplayTest, AnImagesVideoIsMadeAgainAtItsOwnSize) {
  // 90 x 150 pixels.
  const std::string image = std::string(WAN_GOLDEN_DIR) + "/pipelines/i2v-crop.png";
  const std::string job = Made({"--image", image, "--artifact", "safetensors"});
  EXPECT_THAT(Wanctl({"receipt", job}).out, Not(HasSubstr("64x32"))) << "the image is no such one";
  EXPECT_EQ(Wanctl({"replay", job}).exit_code, 2) << "the server does not keep the image";
  const ProcessResult replay = Wanctl({"replay", job, "--image", image});
  EXPECT_EQ(replay.exit_code, 0) << replay.out << replay.err;
  EXPECT_THAT(replay.out, StartsWith("identical: "));

  // The same image in a video of exactly the size that was asked for.
  const std::string exact = Made({"--image", image, "--artifact", "safetensors", "--exact-size"});
  EXPECT_THAT(Wanctl({"receipt", exact}).out, HasSubstr("64x32"));
}

TEST_F(ReplayTest, AnotherFileOfTheModelIsNamed) {
  const std::string job = Made({"--artifact", "safetensors", "--seed", "5"});
  const std::string receipt = Receipt(job);
  server_->Terminate();
  // Other signs for some weights, in the file's place and with its size.
  const std::string weights =
      (Model() / "diffusion_pytorch_model-00002-of-00002.safetensors").string();
  std::string bytes = ReadWholeFile(weights);
  for (size_t i = bytes.size() / 2 | 1; i < bytes.size(); i += 2) bytes[i] ^= '\x80';
  std::ofstream(weights, std::ios::binary | std::ios::trunc) << bytes;
  Start();
  Receipt(Made({"--artifact", "safetensors"}));  // its files have been read
  const ProcessResult replay = Wanctl({"replay", job});
  EXPECT_EQ(replay.exit_code, 7) << replay.out << replay.err;
  EXPECT_THAT(
      replay.out,
      AllOf(StartsWith("different: "), HasSubstr("  safetensors: SHA-256 "),
            HasSubstr("  file diffusion_pytorch_model-00002-of-00002.safetensors: SHA-256 "),
            Not(HasSubstr("config.json:"))));
  EXPECT_EQ(Wanctl({"receipt", job}).out, receipt) << "it says what was, not what is";
}

}  // namespace
}  // namespace wan::e2e
