#include "client/wanctl/command_line.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace wan::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Args = std::vector<std::string>;

std::variant<Options, EarlyExit> Parse(const Args& args) {
  return ParseCommandLine(args, "localhost:50051");
}

// What a good command line means; empty after a failure.
template <typename Command>
Command Parsed(const Args& args) {
  auto parsed = Parse(args);
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    ADD_FAILURE() << exit->err << exit->out;
    return {};
  }
  const auto* command = std::get_if<Command>(&std::get<Options>(parsed).command);
  EXPECT_NE(command, nullptr) << "another command than expected";
  return command == nullptr ? Command() : *command;
}

GlobalFlags ParsedGlobal(const Args& args) {
  auto parsed = Parse(args);
  const auto* options = std::get_if<Options>(&parsed);
  EXPECT_NE(options, nullptr);
  return options == nullptr ? GlobalFlags() : options->global;
}

const Args kGenerate = {"generate", "--model", "5b", "--prompt", "a cat", "--output", "a.mp4"};

Args Generate(const Args& more) {
  Args args = kGenerate;
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(CommandLineTest, GenerateWithTheLeastFlags) {
  const auto command = Parsed<GenerateCommand>(kGenerate);
  EXPECT_EQ(command.flags.request.ShortDebugString(),
            R"(model: "5b" prompt: "a cat" outputs: OUTPUT_KIND_MP4)");
  EXPECT_EQ(command.flags.image_path, "");
  EXPECT_FALSE(command.flags.deadline.has_value());
  EXPECT_THAT(command.outputs, ElementsAre(OutputFile{wan::v1::OUTPUT_KIND_MP4, "a.mp4"}));
}

TEST(CommandLineTest, LatentsAreThoseOfAJobOrOfAFile) {
  const RequestFlags flags =
      Parsed<GenerateCommand>(Generate({"--initial-latents", "noise.safetensors", "--latents", "a1",
                                        "--strength", "0.6"}))
          .flags;
  EXPECT_EQ(flags.initial_latents->name, "noise.safetensors");
  EXPECT_TRUE(flags.initial_latents->file);
  EXPECT_EQ(flags.latents->name, "jobs/a1");
  EXPECT_FALSE(flags.latents->file);
  EXPECT_EQ(flags.request.strength(), 0.6);
}

TEST(CommandLineTest, OnlyARequestWithStepsNeedsAPrompt) {
  const Args decoding = {"--latents", "a1", "--steps", "0"};
  for (const char* command : {"generate", "submit", "quote"}) {
    Args args = {command};
    args.insert(args.end(), decoding.begin(), decoding.end());
    EXPECT_TRUE(std::holds_alternative<Options>(Parse(args))) << command;
    args.back() = "1";
    EXPECT_TRUE(std::holds_alternative<EarlyExit>(Parse(args))) << command;
  }
}

TEST(CommandLineTest, GenerateWithEveryFlag) {
  const auto command = Parsed<GenerateCommand>({"generate",
                                                "--model",
                                                "5b",
                                                "--prompt",
                                                "a cat",
                                                "--negative-prompt",
                                                "a dog",
                                                "--image",
                                                "cat.png",
                                                "--background",
                                                "102030",
                                                "--size",
                                                "1280x704",
                                                "--frames",
                                                "121",
                                                "--fps",
                                                "24",
                                                "--steps",
                                                "50",
                                                "--guidance",
                                                "3.5,4",
                                                "--shift",
                                                "5",
                                                "--solver",
                                                "dpm++",
                                                "--seed",
                                                "-1",
                                                "--request-id",
                                                "r1",
                                                "--priority",
                                                "-5",
                                                "--deadline",
                                                "90",
                                                "--label",
                                                "team=film",
                                                "--label",
                                                "take=2",
                                                "--preview-interval",
                                                "5",
                                                "--preview-dir",
                                                "previews",
                                                "--output",
                                                "a.mkv",
                                                "b.mp4",
                                                "--output",
                                                "c.safetensors",
                                                "--lora",
                                                "style",
                                                "--lora",
                                                "light:-0.5",
                                                "--quality",
                                                "high",
                                                "--vae-precision",
                                                "fp16",
                                                "--decoder",
                                                "tiny",
                                                "--crf",
                                                "18",
                                                "--resume",
                                                "require",
                                                "--profile"});
  wan::v1::GenerationRequest expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      model: "5b" prompt: "a cat" negative_prompt: "a dog" width: 1280 height: 704
      num_frames: 121 fps: 24 steps: 50 guidance_scale: 3.5 guidance_scale: 4 shift: 5
      solver: SOLVER_DPMPP seed: -1 background: "#102030" request_id: "r1" priority: -5
      labels { key: "team" value: "film" } labels { key: "take" value: "2" }
      preview_interval: 5 loras { name: "style" } loras { name: "light" scale: -0.5 }
      quality: QUALITY_HIGH vae_precision: VAE_PRECISION_FP16 decoder: DECODER_TINY h264_crf: 18 profile: true
      resume: RESUME_REQUIRE
      outputs: OUTPUT_KIND_LOSSLESS_MKV outputs: OUTPUT_KIND_MP4 outputs: OUTPUT_KIND_LATENTS)",
                                                            &expected));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(command.flags.request, expected))
      << command.flags.request.DebugString();
  EXPECT_EQ(command.flags.image_path, "cat.png");
  EXPECT_EQ(command.flags.deadline, absl::Seconds(90));
  EXPECT_EQ(command.preview_dir, "previews");
  EXPECT_THAT(command.outputs,
              ElementsAre(OutputFile{wan::v1::OUTPUT_KIND_LOSSLESS_MKV, "a.mkv"},
                          OutputFile{wan::v1::OUTPUT_KIND_MP4, "b.mp4"},
                          OutputFile{wan::v1::OUTPUT_KIND_LATENTS, "c.safetensors"}));
}

TEST(CommandLineTest, TwoFilesOfAKindNeedOneArtifact) {
  const auto command = Parsed<GenerateCommand>(Generate({"--output", "b.mp4"}));
  EXPECT_THAT(command.flags.request.outputs(), ElementsAre(wan::v1::OUTPUT_KIND_MP4));
  EXPECT_EQ(command.outputs.size(), 2u);
}

// Texts that a parser of command lines may be tempted to read.
TEST(CommandLineTest, PromptsPassUntouched) {
  for (const std::string prompt :
       {"--output", "-x", "[a, b]", "{}", "%%", "a=b", "'quoted'", "\"quoted\"", "a\nb", "猫",
        "generate", "list", "--", "@file", "a,b;c"}) {
    SCOPED_TRACE(prompt);
    const auto command = Parsed<GenerateCommand>(
        {"generate", "--prompt", prompt, "--model", "5b", "--output", "a.mp4"});
    EXPECT_EQ(command.flags.request.prompt(), prompt);
    EXPECT_EQ(command.flags.request.model(), "5b");
    const auto joined = Parsed<GenerateCommand>(
        {"generate", "--prompt=" + prompt, "--model", "5b", "--output", "a.mp4"});
    EXPECT_EQ(joined.flags.request.prompt(), prompt);
    EXPECT_EQ(joined.flags.request.model(), "5b");
  }
}

TEST(CommandLineTest, AnEmptyNegativePromptIsSet) {
  EXPECT_TRUE(Parsed<GenerateCommand>(Generate({"--negative-prompt", ""}))
                  .flags.request.has_negative_prompt());
  EXPECT_FALSE(Parsed<GenerateCommand>(kGenerate).flags.request.has_negative_prompt());
}

// The server is asked for its only model, and the file is named after the job.
TEST(CommandLineTest, APromptIsEnough) {
  const auto generate = Parsed<GenerateCommand>({"generate", "--prompt", "a cat"});
  EXPECT_EQ(generate.flags.request.ShortDebugString(),
            R"(prompt: "a cat" outputs: OUTPUT_KIND_MP4)");
  EXPECT_TRUE(generate.outputs.empty());
  EXPECT_EQ(Parsed<GenerateCommand>({"generate", "a cat"}).flags.request.ShortDebugString(),
            generate.flags.request.ShortDebugString());
  EXPECT_EQ(Parsed<GenerateCommand>({"generate", "a cat", "-o", "a.mp4"}).outputs,
            Parsed<GenerateCommand>(kGenerate).outputs);
  EXPECT_EQ(Parsed<GetCommand>({"get", "last"}).job, kLastJob);
  EXPECT_TRUE(Parsed<DownloadCommand>({"download", "a1"}).outputs.empty());
}

TEST(CommandLineTest, Submit) {
  const Args least = {"submit", "--model", "5b", "--prompt", "a cat"};
  EXPECT_THAT(Parsed<SubmitCommand>(least).flags.request.outputs(),
              ElementsAre(wan::v1::OUTPUT_KIND_MP4));
  const auto command = Parsed<SubmitCommand>(
      {"submit", "--model", "5b", "--prompt", "a cat", "--artifact", "safetensors", "--artifact",
       "mkv", "--artifact", "mkv", "--steps", "4", "--preview-interval", "2"});
  EXPECT_THAT(command.flags.request.outputs(),
              ElementsAre(wan::v1::OUTPUT_KIND_LATENTS, wan::v1::OUTPUT_KIND_LOSSLESS_MKV));
  EXPECT_EQ(command.flags.request.steps(), 4);
}

TEST(CommandLineTest, JobCommands) {
  const auto watch = Parsed<WatchCommand>({"watch", "a1", "--after", "7", "--preview-dir", "p"});
  EXPECT_EQ(watch.job, "jobs/a1");
  EXPECT_EQ(watch.after, 7);
  EXPECT_EQ(watch.preview_dir, "p");
  EXPECT_EQ(Parsed<WatchCommand>({"watch", "jobs/a1"}).after, 0);
  EXPECT_EQ(Parsed<GetCommand>({"get", "jobs/a1"}).job, "jobs/a1");
  EXPECT_EQ(Parsed<CancelCommand>({"cancel", "a1"}).job, "jobs/a1");
  EXPECT_EQ(Parsed<DeleteCommand>({"delete", "a1"}).job, "jobs/a1");
  const auto filtered =
      Parsed<ListCommand>({"list", "--filter", "model = m", "--order-by", "priority desc"});
  EXPECT_EQ(filtered.filter, "model = m");
  EXPECT_EQ(filtered.order_by, "priority desc");
  const auto report = Parsed<ReportCommand>(
      {"report", "a1", "jobs/b2", "--format", "html", "--part", "options", "--output", "r.md"});
  EXPECT_EQ(report.jobs, (std::vector<std::string>{"jobs/a1", "jobs/b2"}));
  EXPECT_EQ(report.flags.format, ReportFormat::kHtml);
  EXPECT_EQ(report.flags.parts, std::set<reports::ReportPart>{reports::ReportPart::kOptions});
  EXPECT_EQ(report.flags.output, "r.md");
  EXPECT_TRUE(Parsed<ReportCommand>({"report", "--from", "a.json"}).jobs.empty());
  const auto bench =
      Parsed<BenchCommand>({"bench", "demo", "--output", "d", "--mode", "both", "--num-runs", "3",
                            "--warm-up", "1", "--compare", "T5 on the CPU=h:1", "--label", "a=b"});
  EXPECT_EQ(bench.cases, "demo");
  EXPECT_EQ(bench.mode, BenchMode::kBoth);
  EXPECT_EQ(bench.num_runs, 3);
  EXPECT_EQ(bench.warm_up, 1);
  EXPECT_EQ(bench.compare,
            (std::vector<std::pair<std::string, std::string>>{{"T5 on the CPU", "h:1"}}));
  EXPECT_EQ(Parsed<ReceiptCommand>({"receipt", "a1"}).job, "jobs/a1");
  const auto replay = Parsed<ReplayCommand>({"replay", "a1", "--image", "cat.png"});
  EXPECT_EQ(replay.job, "jobs/a1");
  EXPECT_EQ(replay.image_path, "cat.png");
  const auto latents = Parsed<ReplayCommand>(
      {"replay", "a1", "--initial-latents", "noise.safetensors", "--latents", "x"});
  EXPECT_EQ(latents.initial_latents_path, "noise.safetensors");
  EXPECT_EQ(latents.latents_path, "x");
  EXPECT_TRUE(Parsed<GenerateCommand>(Generate({"--exact-size"})).flags.request.exact_size());
  // Even a job that is called like a command.
  EXPECT_EQ(Parsed<GetCommand>({"get", "list"}).job, "jobs/list");
}

TEST(CommandLineTest, List) {
  const auto all = Parsed<ListCommand>({"list"});
  EXPECT_TRUE(all.states.empty());
  EXPECT_EQ(all.limit, 50);
  const auto some =
      Parsed<ListCommand>({"list", "--state", "queued", "--state", "running", "--limit", "5000"});
  EXPECT_THAT(some.states, ElementsAre(wan::v1::JOB_STATE_QUEUED, wan::v1::JOB_STATE_RUNNING));
  EXPECT_EQ(some.limit, 5000);
}

TEST(CommandLineTest, Download) {
  const OutputFile mp4{wan::v1::OUTPUT_KIND_MP4, "a.mp4"};
  const OutputFile mkv{wan::v1::OUTPUT_KIND_LOSSLESS_MKV, "b.mkv"};
  for (const Args& args : {Args{"download", "a1", "--output", "a.mp4", "b.mkv"},
                           Args{"download", "--output", "a.mp4", "--output", "b.mkv", "a1"},
                           Args{"download", "--output", "a.mp4", "b.mkv", "--", "a1"},
                           Args{"download", "--output", "a.mp4", "b.mkv", "a1"}}) {
    const auto command = Parsed<DownloadCommand>(args);
    EXPECT_EQ(command.job, "jobs/a1");
    EXPECT_THAT(command.outputs, ElementsAre(mp4, mkv));
  }
}

TEST(CommandLineTest, Models) {
  Parsed<ListModelsCommand>({"models"});
  const auto load = Parsed<LoadModelCommand>({"models", "load", "5b", "/checkpoint"});
  EXPECT_EQ(load.request.ShortDebugString(), R"(name: "5b" path: "/checkpoint")");
  EXPECT_EQ(Parsed<LoadModelCommand>({"models", "load", "5b"}).request.path(), "");
  const auto loras = Parsed<LoadModelCommand>(
      {"models", "load", "a14b", "/checkpoint", "--lora", "s=/s", "--lora", "p@high=/p"});
  EXPECT_EQ(loras.request.ShortDebugString(),
            R"(name: "a14b" path: "/checkpoint" loras { name: "s" path: "/s" } )"
            R"(loras { name: "p" expert: "high" path: "/p" })");
  EXPECT_EQ(Parsed<UnloadModelCommand>({"models", "unload", "5b"}).request.name(), "5b");
  const auto warmup = Parsed<WarmupModelCommand>({"models", "warmup", "5b", "64x32x5", "32x64x9"});
  EXPECT_EQ(warmup.request.ShortDebugString(),
            R"(name: "5b" shapes { width: 64 height: 32 num_frames: 5 } )"
            R"(shapes { width: 32 height: 64 num_frames: 9 })");
  EXPECT_EQ(Parsed<WarmupModelCommand>({"models", "warmup", "5b"}).request.shapes_size(), 0);
}

TEST(CommandLineTest, ServerCommands) {
  EXPECT_FALSE(Parsed<DevicesCommand>({"devices"}).watch);
  EXPECT_TRUE(Parsed<DevicesCommand>({"devices", "--watch"}).watch);
  Parsed<InfoCommand>({"info"});
}

TEST(CommandLineTest, TheTimeoutOfDrainIsTheRunningJobs) {
  EXPECT_FALSE(Parsed<DrainCommand>({"drain"}).request.has_timeout());
  for (const Args& args :
       {Args{"drain", "--timeout", "2.5"}, Args{"--timeout", "2.5", "drain", "--json"}}) {
    EXPECT_EQ(Parsed<DrainCommand>(args).request.ShortDebugString(),
              "timeout { seconds: 2 nanos: 500000000 }");
    // The call waits for the server, which keeps the limit.
    EXPECT_EQ(ParsedGlobal(args).timeout, absl::InfiniteDuration());
  }
}

// 0 is what docs/use/api.md allows: the running job stops at its next savepoint.
TEST(CommandLineTest, DrainMayGiveTheRunningJobNoTime) {
  for (const Args& args : {Args{"drain", "--timeout", "0"}, Args{"--timeout=0", "drain"}}) {
    const auto request = Parsed<DrainCommand>(args).request;
    ASSERT_TRUE(request.has_timeout());
    EXPECT_EQ(request.timeout().seconds(), 0);
    EXPECT_EQ(request.timeout().nanos(), 0);
    EXPECT_EQ(ParsedGlobal(args).timeout, absl::InfiniteDuration());
  }
}

TEST(CommandLineTest, Health) {
  EXPECT_EQ(Parsed<HealthCommand>({"health"}).service, "");
  EXPECT_EQ(Parsed<HealthCommand>({"health", "--service", "liveness"}).service, "liveness");
  EXPECT_EQ(ParsedGlobal({"health"}).timeout, absl::Seconds(5)) << "a check must end";
  EXPECT_EQ(ParsedGlobal({"health", "--timeout", "1"}).timeout, absl::Seconds(1));
}

TEST(CommandLineTest, FormatJsonIsJson) {
  EXPECT_TRUE(ParsedGlobal({"list", "--format", "json"}).json);
  EXPECT_TRUE(ParsedGlobal({"--format=json", "list"}).json);
  EXPECT_FALSE(ParsedGlobal({"list", "--format", "table"}).json);
}

TEST(CommandLineTest, GlobalFlagsStandBeforeAndAfterTheCommand) {
  for (const Args& args :
       {Args{"--server", "gpu:1", "--json", "--timeout", "2.5", "list"},
        Args{"list", "--server", "gpu:1", "--json", "--timeout", "2.5"},
        Args{"--json", "list", "--server=gpu:1", "--timeout=2.5"},
        Args{"models", "--json", "unload", "5b", "--server", "gpu:1", "--timeout", "2.5"}}) {
    const GlobalFlags global = ParsedGlobal(args);
    EXPECT_EQ(global.server, "gpu:1");
    EXPECT_TRUE(global.json);
    EXPECT_EQ(global.timeout, absl::Milliseconds(2500));
  }
  const GlobalFlags none = ParsedGlobal({"list"});
  EXPECT_EQ(none.server, "localhost:50051");
  EXPECT_FALSE(none.json);
  EXPECT_EQ(none.timeout, absl::InfiniteDuration());
}

TEST(CommandLineTest, AWrongDefaultServerMattersOnlyWithoutTheFlag) {
  const auto wrong = ParseCommandLine({"list"}, "nonsense");
  ASSERT_TRUE(std::holds_alternative<EarlyExit>(wrong));
  EXPECT_THAT(std::get<EarlyExit>(wrong).err, HasSubstr("WAN_SERVER expects HOST:PORT"));
  EXPECT_TRUE(
      std::holds_alternative<Options>(ParseCommandLine({"list", "--server", "gpu:1"}, "nonsense")));
}

struct Wrong {
  Args args;
  // Part of what is said.
  std::string says;
};

TEST(CommandLineTest, WrongCommandLines) {
  const std::vector<Wrong> table = {
      {{"frobnicate"}, "unknown command frobnicate"},
      {{"--nonsense"}, "--nonsense"},
      {{"list", "--nonsense"}, "--nonsense"},
      {{"list", "extra"}, "extra"},
      {{"--server", "gpu", "list"}, "--server expects HOST:PORT, not 'gpu'"},
      {{"--timeout", "0", "list"}, "--timeout expects seconds above 0"},
      {{"--timeout", "-1", "drain"}, "--timeout expects seconds, 0 or more"},
      {{"health", "--timeout", "0"}, "--timeout expects seconds above 0"},
      {{"list", "--format", "yaml"}, "--format expects one of json, table, not 'yaml'"},
      {{"generate"}, "PROMPT is missing, for example: wanctl generate \"A red cat"},
      {{"generate", "--model", "5b", "-o", "a.mp4"}, "PROMPT is missing"},
      {{"submit"}, "PROMPT is missing, for example: wanctl submit"},
      {{"quote", "--steps", "4"}, "PROMPT is missing, for example: wanctl quote"},
      {{"generate", "a cat", "--prompt", "a dog"},
       "of PROMPT, --prompt and --prompt-file several are given"},
      {{"generate", "a cat", "--prompt-file", "a.txt"},
       "of PROMPT, --prompt and --prompt-file several are given"},
      {{"generate", "a", "cat"}, "generate does not expect 'cat'"},
      {Generate({"--seconds", "0"}), "--seconds expects seconds above 0, at most 3600, not '0'"},
      {Generate({"--seconds", "5", "--frames", "81"}),
       "--frames and --seconds are both given; give one of them"},
      {Generate({"--count", "0"}), "--count expects a whole number above 0"},
      {{"submit", "--from", "prompts"}, "--from expects a file that ends in .txt, .jsonl or .csv"},
      {{"generate", "--model", "", "--prompt", "a", "--output", "a.mp4"}, "--model expects"},
      {Generate({"--output", "b.avi"}), "--output expects a file that ends in .mp4, .mkv or"},
      {Generate({"--output", "a.mp4"}), "--output names a.mp4 twice"},
      {Generate({"--output"}), "--output"},
      {Generate({"--artifact", "mp4"}), "--artifact"},
      {Generate({"--size", "1280"}), "--size expects WIDTHxHEIGHT"},
      {Generate({"--frames", "many"}), "--frames expects a whole number, not 'many'"},
      {Generate({"--fps", "24.0"}), "--fps expects a whole number"},
      {Generate({"--steps", ""}), "--steps expects a whole number, not ''"},
      {Generate({"--steps="}), "--steps expects a whole number, not ''"},
      {Generate({"--steps", "4", "--steps", "5"}), "--steps"},
      {Generate({"--guidance", "1,2,3"}), "--guidance expects a number or LOW,HIGH"},
      {Generate({"--shift", "x"}), "--shift expects a number"},
      {Generate({"--solver", "heun"}), "--solver expects one of unipc, dpm++, euler"},
      {Generate({"--seed", "9223372036854775808"}),
       "--seed expects a whole number from -9223372036854775808 to 9223372036854775807, not"},
      {Generate({"--steps", "3000000000"}),
       "--steps expects a whole number from -2147483648 to 2147483647, not '3000000000'"},
      {{"generate", "--prompt", ""}, "--prompt expects some text"},
      {{"generate", "--prompt="}, "--prompt expects some text"},
      {Generate({"--lora", ""}), "--lora expects NAME, NAME:SCALE or NAME:HIGH/LOW"},
      {Generate({"--label", ""}), "--label expects KEY=VALUE"},
      {Generate({"--request-id", ""}), "--request-id expects some text"},
      {Generate({"--priority", "high"}), "--priority expects a whole number"},
      {Generate({"--deadline", "-1"}), "--deadline expects seconds above 0"},
      {Generate({"--label", "team"}), "--label expects KEY=VALUE"},
      {Generate({"--lora", "style:much"}), "--lora expects NAME, NAME:SCALE or NAME:HIGH/LOW"},
      {{"models", "load", "5b", "--lora", "style"}, "--lora expects NAME=PATH"},
      {{"models", "load", "5b=/checkpoint"}, "expects a NAME without '='"},
      {Generate({"--label", "a=1", "--label", "a=2"}), "--label gives 'a' twice"},
      {Generate({"--preview-interval", "5"}), "--preview-interval needs --preview-dir DIR"},
      {Generate({"--preview-dir", "p"}), "--preview-dir needs --preview-interval"},
      {Generate({"--image"}), "--image"},
      {{"submit", "--model", "5b", "--prompt", "a", "--output", "a.mp4"}, "--output"},
      {{"submit", "--model", "5b", "--prompt", "a", "--artifact", "gif"}, "--artifact expects one"},
      {{"watch"}, "JOB is required"},
      {{"watch", ""}, "JOB argument expects jobs/ID"},
      {{"watch", "a", "b"}, "b"},
      {{"watch", "a", "--after", "x"}, "--after expects a whole number"},
      {{"get"}, "JOB is required"},
      {{"cancel"}, "JOB is required"},
      {{"report"}, "JOB is required"},
      {{"list", "--state", "done"}, "--state expects one of"},
      {{"list", "--limit", "0"}, "--limit expects a whole number above 0"},
      {{"completion"}, "SHELL is required"},
      {{"completion", "ksh"}, "SHELL argument expects bash, zsh or fish, not 'ksh'"},
      {{"top", "--json"}, "programs have 'list', 'info' and 'devices --watch'"},
      {{"top", "--interval", "0"}, "--interval expects seconds above 0"},
      {{"download", "--output", "a.mp4"}, "JOB is required"},
      {{"download", "a1", "--output", "a.gif"}, "--output expects"},
      {{"models", "load"}, "NAME is required"},
      {{"models", "unload"}, "NAME is required"},
      {{"models", "frobnicate"}, "frobnicate"},
      {{"models", "warmup", "5b", "64x32"}, "SHAPE argument expects WIDTHxHEIGHTxFRAMES"},
      {{"devices", "gpu"}, "gpu"},
  };
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(::testing::PrintToString(wrong.args));
    const auto parsed = Parse(wrong.args);
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    ASSERT_NE(exit, nullptr);
    EXPECT_EQ(exit->code, 2);
    EXPECT_EQ(exit->out, "");
    EXPECT_THAT(exit->err, HasSubstr(wrong.says));
    EXPECT_THAT(exit->err, HasSubstr("--help"));
  }
}

TEST(CommandLineTest, HelpAndVersion) {
  for (const auto& [args, says] :
       std::vector<std::pair<Args, std::string>>{{{"--version"}, "wanctl "},
                                                 {{"--help"}, "Examples:"},
                                                 {{"generate", "--help"}, "--negative-prompt TEXT"},
                                                 {{"models", "load", "--help"}, "PATH"}}) {
    const auto parsed = Parse(args);
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    ASSERT_NE(exit, nullptr);
    EXPECT_EQ(exit->code, 0);
    EXPECT_THAT(exit->out, HasSubstr(says));
    EXPECT_EQ(exit->err, "");
  }
}

}  // namespace
}  // namespace wan::client
