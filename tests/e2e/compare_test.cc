// wanctl compare with the real programs and a real model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CompareTest : public testing::Test {
 protected:
  CompareTest() : server_({.data_dir = folder_.path()}) {}

  ProcessResult Wanctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {std::string(WAN_BINARY_DIR) + "/wanctl", "--server", server_.grpc_address()});
    return RunProcess(arguments);
  }

  // The name of a job that has completed.
  std::string Made(int steps, int frames = 5) {
    const ProcessResult submitted =
        Wanctl({"submit", "--prompt", "A cat.", "--size", "64x32", "--seed", "7", "--artifact",
                "mkv", "--steps", std::to_string(steps), "--frames", std::to_string(frames)});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string job = submitted.out.substr(0, submitted.out.find('\n'));
    EXPECT_EQ(Wanctl({"watch", job}).exit_code, 0);
    return job;
  }

  TemporaryFolder folder_;
  TestServer server_;
};

TEST_F(CompareTest, TheCostOfAnOptionIsMeasuredAndNamed) {
  const std::string three = Made(3), two = Made(2);
  const ProcessResult shown = Wanctl({"compare", three, two, "--output", folder_.File("out/"),
                                      "--side-by-side", folder_.File("ab.mp4")});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(
      shown.out,
      AllOf(HasSubstr("A:    " + three + ", its lossless .mkv\n"),
            HasSubstr("Both: 64x32, 5 frames, "),
            HasSubstr("The jobs differ in one thing:\n\n- request: steps: 3 in A, 2 in B\n")));
  EXPECT_GT(std::filesystem::file_size(folder_.File("ab.mp4")), 1000u);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("out/plots/02_ssim.svg")));

  const ProcessResult again = Wanctl({"compare", three, two, "--json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  nlohmann::json written =
      nlohmann::json::parse(ReadWholeFile(folder_.File("out/comparison.json")));
  written.erase("sideBySide");
  EXPECT_EQ(nlohmann::json::parse(again.out), written) << "the same digits";
  EXPECT_LT(written["psnr"]["mean"], 100);
}

TEST_F(CompareTest, TheSameRequestGivesEqualPixels) {
  const ProcessResult shown = Wanctl({"compare", Made(2), Made(2), "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const nlohmann::json json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["identicalFrames"], 5);
  EXPECT_EQ(json["psnr"]["mean"], 100);
  EXPECT_EQ(json["ssim"]["worst"], 1);
  EXPECT_TRUE(json["differences"].empty()) << json["differences"];
}

TEST_F(CompareTest, OtherFramesAreRefused) {
  const ProcessResult refused = Wanctl({"compare", Made(1), Made(1, 9)});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("frames: is 5 in A and 9 in B; must be the same in both"));
}

}  // namespace
}  // namespace wan::e2e
