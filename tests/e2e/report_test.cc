// wanctl's reports of real jobs: what the server stores is enough for all four.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportTest : public testing::Test {
 protected:
  ProcessResult Wanctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {std::string(WAN_BINARY_DIR) + "/wanctl", "--server", server_.grpc_address()});
    return RunProcess(arguments);
  }

  TemporaryFolder folder_;
  TestServer server_{{.data_dir = folder_.path()}};
};

TEST_F(ReportTest, BenchAndReport) {
  const std::string cases = folder_.File("cases.yaml");
  std::ofstream(cases) << "defaults: {model: tiny, prompt: A cat., size: 64x32, frames: 5}\n"
                          "cases:\n"
                          "  - {name: two, steps: 2, options: {one forward: {guidance: 1}}}\n"
                          "  - {name: three, steps: 3, profile: true}\n";
  const std::string out = folder_.File("bench");
  const ProcessResult bench = Wanctl({"bench", cases, "--output", out, "--mode", "both"});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("three"));
  const std::string markdown = ReadWholeFile(out + "/report.md");
  for (const char* title : {"# Wan2.2 Benchmark Report", "# Wan2.2 Performance Analysis Report",
                            "# Performance Bottleneck Analysis", "# Options Before and After"}) {
    EXPECT_THAT(markdown, HasSubstr(title));
  }
  // The same request again has the same latents, and another guidance has not.
  EXPECT_THAT(markdown, HasSubstr("latents: same bits; frames: same bits"));
  EXPECT_THAT(markdown, HasSubstr("latents differ by"));
  EXPECT_THAT(markdown, HasSubstr("| Total\\_Execution |"));
  // The autoencoder's work, and the operators of the block that 'three' measured.
  EXPECT_THAT(markdown, HasSubstr("\n| VAE\\_Decoding | 0."));
  EXPECT_THAT(markdown, HasSubstr("| feed\\_forward\\_out | feed\\_forward |"));
  EXPECT_THAT(markdown, HasSubstr("measured in Step\\_1\\_Inference, forward, block"));
  EXPECT_THAT(
      ReadWholeFile(out + "/report.html"),
      AllOf(HasSubstr("</svg>"), HasSubstr("Frames of two"), HasSubstr("alt=\"frame 5 of 5\"")));

  const wan::v1::Job job = server_.Await(server_.Submit(TinyRequest(2)).name());
  const ProcessResult table = Wanctl({"report", job.name()});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("Step_1_Inference"));
  EXPECT_THAT(table.out, Not(HasSubstr("GPU Mem"))) << "there is no GPU";
  const ProcessResult html = Wanctl({"report", job.name(), "--format", "html"});
  ASSERT_EQ(html.exit_code, 0) << html.err;
  EXPECT_THAT(html.out, HasSubstr("<img src=\"data:image/jpeg;base64,"));
  EXPECT_EQ(html.err, "");
  const ProcessResult text = Wanctl({"report", job.name(), "--format", "text"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("[Execution Trace Analysis]"));
}

// Options that only a server's settings decide are run on a second one.
TEST_F(ReportTest, BenchOnTwoServers) {
  const TemporaryFolder folder;
  TestServer bf16({.data_dir = folder.path(), .flags = {"--dtype", "bf16"}});
  const std::string cases = folder_.File("cases.yaml");
  std::ofstream(cases) << "cases:\n  - {name: one, model: tiny, prompt: A cat., size: 64x32, "
                          "frames: 5, steps: 2}\n";
  const std::string out = folder_.File("bench");
  const ProcessResult bench =
      Wanctl({"bench", cases, "--output", out, "--mode", "both", "--original-server",
              server_.grpc_address(), "--compare", "bf16=" + bf16.grpc_address()});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  const std::string markdown = ReadWholeFile(out + "/report.md");
  EXPECT_THAT(markdown, HasSubstr("| one | bf16 | dtype fp32"));
  EXPECT_THAT(markdown, HasSubstr("| dtype bf16"));
  EXPECT_THAT(markdown, HasSubstr("| one | original | no setting differs |"));
  EXPECT_THAT(bf16.Metrics(), HasSubstr("wan_jobs_total"));
}

}  // namespace
}  // namespace wan::e2e
