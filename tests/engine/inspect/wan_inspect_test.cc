// The program itself: exit codes, and where its answers go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <string>

namespace wan {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  int code = -1;
  std::string output;
};

// Runs a shell command line in which $P is the program.
Result Shell(const std::string& command) {
  const std::string line = "P=" WAN_BINARY_DIR "/wan_inspect; C=" WAN_CHECKPOINT_DIR "; " + command;
  Result result;
  FILE* const pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const size_t size = ::fread(buffer, 1, sizeof(buffer), pipe)) {
    result.output.append(buffer, size);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

TEST(WanInspectTest, ExitCodesTellSoundDamagedAndUsage) {
  EXPECT_EQ(Shell("$P checkpoint $C/ti2v-5b/original").code, 0);
  EXPECT_EQ(Shell("$P checkpoint synthetic:ti2v-5b").code, 0);
  EXPECT_EQ(Shell("$P checkpoint $C").code, 1);
  EXPECT_EQ(Shell("$P checkpoint /nowhere").code, 1);
  EXPECT_EQ(Shell("$P tokens /nowhere 2>&1 < /dev/null").code, 1);
  EXPECT_EQ(Shell("$P 2>&1").code, 2);
  EXPECT_EQ(Shell("$P checkpoint 2>&1").code, 2);
  EXPECT_EQ(Shell("$P checkpoint $C --jsom 2>&1").code, 2);
  EXPECT_EQ(Shell("$P frobnicate 2>&1").code, 2);
  EXPECT_EQ(Shell("$P --help").code, 0);
}

TEST(WanInspectTest, CheckpointSpeaksTextAndJson) {
  EXPECT_THAT(Shell("$P checkpoint $C/ti2v-5b/diffusers").output, StartsWith("checkpoint  "));
  const Result damaged = Shell("$P checkpoint --json $C");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_EQ(nlohmann::json::parse(damaged.output)["ok"], false);
}

TEST(WanInspectTest, LoraTellsWhatIsWrongWithAFile) {
  const Result missing = Shell("$P lora /nowhere synthetic:ti2v-5b");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.output, HasSubstr("problem       /nowhere: "));
  EXPECT_EQ(Shell("$P lora /nowhere 2>&1").code, 2);
}

TEST(WanInspectTest, PlanTellsWhatFitsACard) {
  const Result fits = Shell("$P plan synthetic:ti2v-5b --memory 23.5 --shape 1280x704x121");
  EXPECT_EQ(fits.code, 0);
  EXPECT_THAT(fits.output, HasSubstr("1280x704x121: at most "));
  const Result mixed = Shell(
      "$P plan synthetic:ti2v-5b --memory 8 --residency-policy vae=resident "
      "--shape 832x480x81 --shape 4096x4096x961 --json");
  EXPECT_EQ(mixed.code, 1);
  const auto report = nlohmann::json::parse(mixed.output);
  EXPECT_EQ(report["videos"][0]["fits"], true);
  EXPECT_EQ(report["videos"][0]["policies"]["vae"], "resident");
  EXPECT_EQ(report["videos"][1]["fits"], false);
  EXPECT_EQ(Shell("$P plan /nowhere 2>&1").code, 1);
  EXPECT_EQ(Shell("$P plan synthetic:ti2v-5b --shape 1280x704 2>&1").code, 2);
  EXPECT_EQ(Shell("$P plan synthetic:ti2v-5b --residency-policy vae=lazy 2>&1").code, 2);
  EXPECT_EQ(Shell("$P plan synthetic:ti2v-5b --memory -1 2>&1").code, 2);
  EXPECT_EQ(Shell("$P plan synthetic:ti2v-5b --eight-bit-weights vae 2>&1").code, 2);
}

TEST(WanInspectTest, BothExpertsInEightBitsNeedNoOffloadingOn48GB) {
  const Result plan = Shell(
      "$P plan synthetic:t2v-a14b --memory 44.25 --shape 1280x720x81 --json "
      "--eight-bit-weights transformers --eight-bit-weights text_encoder "
      "--residency-policy transformer=resident --residency-policy transformer_2=resident");
  ASSERT_EQ(plan.code, 0) << plan.output;
  const auto video = nlohmann::json::parse(plan.output)["videos"][0];
  EXPECT_LT(video["peak_bytes"].get<double>() / (1 << 30), 44.0);
}

TEST(WanInspectTest, TokensAnswersEveryLineAtOnce) {
  const Result result = Shell(
      R"(printf '{"text":" A  red cat"}\nnonsense\n{"text":""}' | $P tokens $C/ti2v-5b/original)");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, StartsWith(R"({"cleaned":"A red cat","ids":[)"));
  EXPECT_THAT(result.output, HasSubstr("\n{\"error\":"));
  EXPECT_THAT(result.output, HasSubstr("\n{\"cleaned\":\"\",\"ids\":[1]}\n"));
}

}  // namespace
}  // namespace wan
