// The two command-line programs as scripts use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

google::protobuf::Struct ParseJson(const std::string& text) {
  google::protobuf::Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &parsed).ok()) << text;
  return parsed;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class WanctlTest : public testing::Test {
 protected:
  ProcessResult Wanctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {std::string(WAN_BINARY_DIR) + "/wanctl", "--server", server_.grpc_address()});
    return RunProcess(arguments);
  }

  // Arguments of a small job after a verb.
  static std::vector<std::string> Small(const std::string& verb,
                                        std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {verb,     "--model", "tiny",     "--prompt", "A cat.",
                                          "--size", "64x32",   "--frames", "5",        "--steps",
                                          "2",      "--seed",  "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TemporaryFolder folder_;
  TestServer server_{{.data_dir = folder_.path()}};
};

TEST_F(WanctlTest, GenerateWritesEveryOutputByItsEnding) {
  const std::string mp4 = folder_.File("out.mp4");
  const std::string mkv = folder_.File("out.mkv");
  const std::string latents = folder_.File("out.safetensors");
  const ProcessResult result =
      Wanctl(Small("generate", {"--output", mp4, "--output", mkv, "--output", latents}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadWholeFile(mp4).substr(4, 4), "ftyp");
  EXPECT_EQ(ReadWholeFile(mkv).substr(0, 4), "\x1a\x45\xdf\xa3");
  EXPECT_THAT(ReadWholeFile(latents), HasSubstr("\"latents\""));
}

// The seed that generate prints makes the same video, also if the server drew it.
TEST_F(WanctlTest, ThePrintedSeedMakesTheVideoAgain) {
  const auto generate = [this](const std::string& seed, const std::string& file) {
    return Wanctl({"generate", "--prompt", "A cat.", "--size", "64x32", "--frames", "5", "--steps",
                   "2", "--seed", seed, "--output", file});
  };
  const std::string drawn = folder_.File("drawn.safetensors");
  const ProcessResult result = generate("-1", drawn);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string line = Lines(result.err).back();
  ASSERT_THAT(line, MatchesRegex("wanctl: jobs/[^ ]+ has seed [0-9]+"));
  const std::string again = folder_.File("again.safetensors");
  ASSERT_EQ(generate(line.substr(line.rfind(' ') + 1), again).exit_code, 0);
  EXPECT_EQ(ReadWholeFile(again), ReadWholeFile(drawn));
}

TEST_F(WanctlTest, TheLifeOfASubmittedJob) {
  const ProcessResult submitted = Wanctl(Small("submit", {"--artifact", "safetensors"}));
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  ASSERT_EQ(Lines(submitted.out).size(), 1u);
  const std::string job = Lines(submitted.out)[0];
  EXPECT_THAT(job, MatchesRegex("jobs/[^ ]+"));
  EXPECT_EQ(Wanctl({"watch", job}).exit_code, 0);
  EXPECT_THAT(Wanctl({"get", job}).out, HasSubstr("COMPLETED"));
  EXPECT_THAT(Wanctl({"list"}).out, HasSubstr(job));
  const std::string report = Wanctl({"report", job}).out;
  for (const char* stage : {"T5_Encoding", "Step_1_Inference", "Total_Execution"}) {
    EXPECT_THAT(report, HasSubstr(stage));
  }
  EXPECT_THAT(report, Not(HasSubstr("VAE_Decoding"))) << "nobody asked for frames";
  const std::string file = folder_.File("latents.safetensors");
  EXPECT_EQ(Wanctl({"download", job, "--output", file}).exit_code, 0);
  EXPECT_THAT(ReadWholeFile(file), HasSubstr("\"latents\""));
}

TEST_F(WanctlTest, JsonIsEveryMessageOnALine) {
  std::vector<std::string> arguments = Small("generate", {"--output", folder_.File("a.mp4")});
  arguments.insert(arguments.begin(), "--json");
  const ProcessResult result = Wanctl(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  bool completed = false;
  for (const std::string& line : Lines(result.out)) {
    completed |= ParseJson(line).fields().count("completed") > 0;
  }
  EXPECT_TRUE(completed);
}

TEST_F(WanctlTest, ExitCodesTellTheOutcome) {
  EXPECT_EQ(Wanctl({"generate", "--no-such-flag"}).exit_code, 2);
  EXPECT_EQ(Wanctl(Small("generate", {"--output", folder_.File("a.gif")})).exit_code, 2);
  const ProcessResult rejected =
      Wanctl({"submit", "--model", "tiny", "--prompt", "A cat.", "--size", "65x31"});
  EXPECT_EQ(rejected.exit_code, 3);
  EXPECT_THAT(rejected.err, HasSubstr("width"));
  EXPECT_THAT(rejected.err, HasSubstr("height"));
  const std::string job = Lines(Wanctl({"submit", "--model", "tiny", "--prompt", "A cat.", "--size",
                                        "64x32", "--frames", "5", "--steps", "1000"})
                                    .out)
                              .at(0);
  EXPECT_EQ(Wanctl({"cancel", job}).exit_code, 0);
  EXPECT_EQ(Wanctl({"watch", job}).exit_code, 5);
  EXPECT_EQ(RunProcess({std::string(WAN_BINARY_DIR) + "/wanctl", "--server", "127.0.0.1:1", "list"})
                .exit_code,
            6);
}

TEST_F(WanctlTest, ModelsAndDevices) {
  EXPECT_THAT(Wanctl({"models"}).out, HasSubstr("tiny"));
  EXPECT_THAT(Wanctl({"devices"}).out, HasSubstr("cpu"));
}

TEST(WanInspectTest, SaysWhatACheckpointIs) {
  const std::string inspect = std::string(WAN_BINARY_DIR) + "/wan_inspect";
  for (const char* layout : {"original", "diffusers"}) {
    const ProcessResult result =
        RunProcess({inspect, "checkpoint", std::string(WAN_CHECKPOINT_DIR) + "/ti2v-5b/" + layout});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* fact : {"ti2v-5b", "transformer", "text_encoder", "vae", layout}) {
      EXPECT_THAT(result.out, HasSubstr(fact));
    }
  }
  EXPECT_EQ(RunProcess({inspect, "checkpoint", "/nowhere"}).exit_code, 1);
}

}  // namespace
}  // namespace wan::e2e
