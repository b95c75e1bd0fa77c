// wanctl bench and report: whole command lines, the cases' YAML, and latents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/wanctl/bench_cases.h"
#include "client/wanctl/latents.h"
#include "tests/client/compare/test_video.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Latents(const std::vector<float>& values) {
  const std::string header = "{\"latents\":{\"dtype\":\"F32\",\"shape\":[" +
                             std::to_string(values.size()) + "],\"data_offsets\":[0," +
                             std::to_string(values.size() * 4) + "]}}";
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += header;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return file;
}

TEST(LatentsTest, SameBitsAndDifferences) {
  const std::string a = Latents({3, 4});
  EXPECT_TRUE(CompareLatents(a, a)->identical);
  const auto other = CompareLatents(a, Latents({3, 4.5}));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->identical);
  EXPECT_NEAR(*other->relative, 0.1, 1e-7);
  EXPECT_THAT(std::string(CompareLatents(a, Latents({1})).status().message()),
              HasSubstr("the shapes [2] and [1]"));
  EXPECT_FALSE(CompareLatents(a, "short").ok());
  EXPECT_FALSE(CompareLatents(a, a.substr(0, a.size() - 1)).ok());
}

TEST(BenchCasesTest, DefaultsAreRead) {
  for (const char* name : {"demo", "seeds"}) {
    const auto cases = ParseBenchCases(DefaultBenchCases(name), name);
    ASSERT_TRUE(cases.ok()) << cases.status();
    std::set<std::string> names;
    for (const BenchCase& one : *cases) {
      names.insert(one.name);
      EXPECT_EQ(one.request.seed(), 42) << one.name;
      EXPECT_EQ(one.request.num_frames() % 4, 1) << one.name;
    }
    EXPECT_EQ(names.size(), cases->size());
    if (name == std::string("seeds")) {
      EXPECT_TRUE(names.contains("01_Speed_Preview_480p"));
      EXPECT_TRUE(names.contains("02_Efficiency_Mode_720p"));
      EXPECT_TRUE(names.contains("03_Performance_Mode_720p"));
      EXPECT_EQ(cases->front().original.request.vae_precision(), wan::v1::VAE_PRECISION_FP32);
    } else {
      EXPECT_TRUE(cases->front().original.cold);
    }
  }
  EXPECT_EQ(DefaultBenchCases("other"), nullptr);
}

TEST(BenchCasesTest, KeysAndVariants) {
  const auto cases = ParseBenchCases(R"(
defaults: {model: m, steps: 4, profile: true}
cases:
  - name: a
    prompt: A cat.
    size: 64x32
    original: {vae_precision: fp32, guidance: "1,2"}
    options: {few: {steps: 2, quality: fast}, cold: {warm_up: false}}
)",
                                     "c.yaml");
  ASSERT_TRUE(cases.ok()) << cases.status();
  const BenchCase& one = cases->front();
  EXPECT_EQ(one.request.model(), "m");
  EXPECT_EQ(one.request.width(), 64);
  EXPECT_EQ(one.request.vae_precision(), wan::v1::VAE_PRECISION_UNSPECIFIED);
  EXPECT_EQ(one.original.request.vae_precision(), wan::v1::VAE_PRECISION_FP32);
  EXPECT_EQ(one.original.request.guidance_scale_size(), 2);
  EXPECT_FALSE(one.original.cold);
  EXPECT_EQ(one.options[0].name, "few");
  EXPECT_EQ(one.options[0].request.steps(), 2);
  EXPECT_EQ(one.options[0].request.quality(), wan::v1::QUALITY_FAST);
  EXPECT_FALSE(one.options[0].cold);
  EXPECT_TRUE(one.options[1].cold);
  EXPECT_EQ(one.options[1].request.steps(), 4);
  EXPECT_TRUE(one.original.request.profile());
}

TEST(BenchCasesTest, SaysWhatIsWrong) {
  const struct {
    const char* yaml;
    const char* message;
  } kWrong[] = {
      {"[", "c.yaml is not YAML"},
      {"a: 1", "c.yaml: has the key 'a'; it may have 'defaults' and 'cases'"},
      {"cases: []", "must have a list 'cases' with at least one case"},
      {"cases: [{prompt: p}]", "c.yaml: case 1: has no name"},
      {"cases: [{name: a, model: m}]", "c.yaml: a: has no prompt"},
      {"cases: [{name: a, prompt: p}]", "c.yaml: a: has no model"},
      {"cases: [{name: a, prompt: p, model: m, sizes: 1}]",
       "c.yaml: a: has the key 'sizes'; the keys are"},
      {"cases: [{name: a, prompt: p, model: m, size: 12}]", "c.yaml: a: size expects"},
      {"cases: [{name: a, prompt: p, model: m, profile: 1}]",
       "c.yaml: a: profile expects one of true, false"},
      {"cases: [{name: a, prompt: p, model: m, options: {x: {warm_up: 1}}}]",
       "c.yaml: a: warm_up expects one of true, false"},
      {"cases: [{name: a, prompt: p, model: m, warm_up: false}]", "a: has the key 'warm_up'"},
      {"cases: [{name: a, prompt: p, model: m, options: {original: {steps: 2}}}]",
       "c.yaml: a: has an option 'original'"},
      {"cases: [{name: a, prompt: p, model: m, seed: -1}]",
       "c.yaml: a: seed expects a whole number from 0, so that the run can be repeated, not '-1'"},
      {"cases: [{name: a, prompt: p, model: m, image: ''}]",
       "c.yaml: a: has an empty image; must be FILE"},
      {"cases: [{name: a, prompt: p, model: m, steps: [1]}]", "steps must be a single value"},
      {"cases: [{name: a, prompt: p, model: m}, {name: a, prompt: p, model: m}]",
       "c.yaml: a: is given twice"},
  };
  for (const auto& wrong : kWrong) {
    const auto cases = ParseBenchCases(wrong.yaml, "c.yaml");
    ASSERT_FALSE(cases.ok()) << wrong.yaml;
    EXPECT_THAT(std::string(cases.status().message()), HasSubstr(wrong.message));
  }
}

class BenchTest : public WanctlTest {
 protected:
  BenchTest() {
    std::ofstream(cases_) << "defaults: {model: m, prompt: p, steps: 1}\n"
                             "cases:\n"
                             "  - {name: first, original: {vae_precision: fp32}}\n"
                             "  - {name: second, steps: 2}\n";
    server_.scripts.create_job = [this](const wan::v1::CreateJobRequest& request,
                                        wan::v1::Job* job) {
      requests_.push_back(request.request());
      job->set_name("jobs/" + std::to_string(requests_.size()));
      return grpc::Status::OK;
    };
    const wan::v1::Artifact artifact =
        Serve(wan::v1::OUTPUT_KIND_LATENTS, "latents.safetensors", Latents({3, 4}));
    server_.scripts.watch_job = [this, artifact](const wan::v1::WatchJobRequest&) {
      // The autoencoder's precision changes the frames and leaves the latents.
      wan::v1::Artifact video;
      video.set_kind(wan::v1::OUTPUT_KIND_MP4);
      video.set_sha256(wan::v1::VaePrecision_Name(requests_.back().vae_precision()));
      if (videos_.contains(requests_.back().vae_precision())) {
        video = videos_.at(requests_.back().vae_precision());
      }
      if (requests_.back().steps() == fails_ || requests_.size() == fails_from_) {
        wan::v1::Event failed;
        failed.set_sequence(1);
        failed.mutable_failed()->mutable_status()->set_code(13);
        failed.mutable_failed()->mutable_status()->set_message("no luck");
        return fakes::Stream<wan::v1::Event>{.messages = {failed}};
      }
      return fakes::Stream<wan::v1::Event>{.messages = {CompletedWith(1, {video, artifact})}};
    };
    server_.scripts.get_report = [this](const wan::v1::GetReportRequest& request,
                                        wan::v1::JobReport* report) {
      report->set_job(request.job());
      report->set_dtype("fp32");
      report->mutable_system()->mutable_gpu()->set_name(gpu_);
      const size_t index = std::stoul(request.job().substr(5)) - 1;
      *report->mutable_request() = requests_[index];
      auto* total = report->add_stages();
      total->set_stage("Total_Execution");
      total->set_seconds(10);
      return grpc::Status::OK;
    };
  }

  std::string Folder() const { return (folder_ / "out").string(); }

  const std::string cases_ = (folder_ / "cases.yaml").string();
  std::vector<wan::v1::GenerationRequest> requests_;
  // The card of the server's reports.
  std::string gpu_;
  // A job of so many steps fails.
  int fails_ = -1;
  // So does the one with this number, from 1.
  size_t fails_from_ = 0;
  // The MP4 files of jobs by the autoencoder's precision; others cannot be downloaded.
  std::map<wan::v1::VaePrecision, wan::v1::Artifact> videos_;
};

TEST_F(BenchTest, RunsEveryCaseAndWritesTheReports) {
  ASSERT_EQ(Run({"bench", cases_, "--output", Folder(), "--mode", "both", "--num-runs", "2",
                 "--warm-up", "1", "--label", "team=video"}),
            0)
      << err_;
  // Two cases, twice each, three times.
  ASSERT_EQ(requests_.size(), 12u);
  EXPECT_EQ(requests_[1].labels().at("bench_case"), "first");
  EXPECT_EQ(requests_[1].labels().at("team"), "video");
  EXPECT_EQ(requests_[4].labels().at("bench_variant"), "original");
  EXPECT_EQ(requests_[4].vae_precision(), wan::v1::VAE_PRECISION_FP32);
  EXPECT_THAT(out_, HasSubstr("first (original, run 2)"));
  EXPECT_THAT(err_, HasSubstr("first, warm-up"));
  const std::filesystem::path folder = Folder();
  EXPECT_THAT(Content(folder / "report.md"),
              HasSubstr("| first | original | vae\\_precision fp32 | vae\\_precision default |"));
  EXPECT_THAT(Content(folder / "report.md"), HasSubstr("same bits"));
  EXPECT_THAT(Content(folder / "report.md"), HasSubstr("(plots/"));
  EXPECT_THAT(Content(folder / "report.html"), HasSubstr("<svg"));
  EXPECT_FALSE(std::filesystem::is_empty(folder / "plots"));

  // The file is enough for every other format.
  ASSERT_EQ(RunAt({"report", "--from", (folder / "report.json").string(), "--format", "markdown",
                   "--part", "options"}),
            0)
      << err_;
  EXPECT_THAT(out_, HasSubstr("same bits"));
  EXPECT_THAT(out_, Not(HasSubstr("Stage Breakdown")));
}

TEST_F(BenchTest, AnImageThatCannotBeUsedIsToldBeforeTheFirstJob) {
  const std::string empty = (folder_ / "empty.png").string();
  fakes::WriteFile(empty, "");
  std::ofstream(cases_, std::ios::app) << "  - {name: third, image: " << empty << "}\n";
  EXPECT_EQ(Run({"bench", cases_, "--output", Folder()}), 2);
  EXPECT_THAT(err_, HasSubstr(cases_ + ": third: image " + empty + " is empty; must be a PNG"));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(BenchTest, FramesAreComparedAsWellAsLatents) {
  ASSERT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "first", "--mode", "both"}), 0);
  const std::filesystem::path folder = Folder();
  EXPECT_THAT(Content(folder / "report.md"), HasSubstr("latents: same bits; frames: other bits |"));
  ASSERT_EQ(RunAt({"report", "--from", (folder / "report.json").string(), "--format", "markdown",
                   "--part", "options"}),
            0);
  EXPECT_THAT(out_, HasSubstr("latents: same bits; frames: other bits |"));
}

TEST_F(BenchTest, FramesAreShownAndTheirPsnrIsBesideTheLatents) {
  const auto serve = [this](wan::v1::VaePrecision precision, const fakes::TestVideo& video) {
    const std::string name = wan::v1::VaePrecision_Name(precision) + ".mp4";
    fakes::WriteTestVideo(folder_ / name, video);
    videos_[precision] = Serve(wan::v1::OUTPUT_KIND_MP4, name, fakes::ReadFile(folder_ / name));
  };
  serve(wan::v1::VAE_PRECISION_UNSPECIFIED, {.frames = 9});
  serve(wan::v1::VAE_PRECISION_FP32, {.frames = 9, .grain = 10});
  std::ofstream(cases_, std::ios::app)
      << "  - {name: third, frames: 9, original: {vae_precision: fp32}}\n";
  ASSERT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "third", "--mode", "both"}), 0)
      << err_;
  const std::filesystem::path folder = Folder();
  EXPECT_THAT(Content(folder / "report.md"),
              testing::ContainsRegex("latents: same bits; frames: PSNR [23][0-9].[0-9] dB"));
  const std::string html = Content(folder / "report.html");
  EXPECT_THAT(html, HasSubstr("Frames of third"));
  EXPECT_THAT(html, HasSubstr("alt=\"frame 6 of 6\""));
  ASSERT_EQ(RunAt({"report", "--from", (folder / "report.json").string(), "--format", "html"}), 0);
  EXPECT_EQ(out_, html);
}

TEST_F(BenchTest, FewerRunsThanAskedForAreSaid) {
  fails_from_ = 2;
  EXPECT_NE(Run({"bench", cases_, "--output", Folder(), "--only", "first", "--mode", "both",
                 "--num-runs", "3"}),
            0);
  EXPECT_EQ(requests_[0].labels().at("bench_runs"), "3");
  const std::string markdown = Content(std::filesystem::path(Folder()) / "report.md");
  EXPECT_THAT(markdown, HasSubstr("| 10.00 | 3: 10.00 to 10.00 s | 10.00 | 1 of 3 |"));
  EXPECT_THAT(markdown, HasSubstr("| 1 of 3 | 10.00 |")) << "in the summary as well";
}

// What has no warm-up runs first, each time with its model loaded again, and is compared with what
// comes after it.
TEST_F(BenchTest, AColdVariantRunsBeforeTheCase) {
  std::vector<std::string> calls;
  server_.scripts.unload_model = [&](const wan::v1::UnloadModelRequest& request, auto*) {
    calls.push_back("unload " + request.name() + " after " + std::to_string(requests_.size()));
    return grpc::Status::OK;
  };
  server_.scripts.load_model = [&](const wan::v1::LoadModelRequest& request, auto*) {
    calls.push_back("load " + request.name() + (request.wait() ? " and wait" : ""));
    return grpc::Status::OK;
  };
  std::ofstream(cases_, std::ios::app)
      << "  - {name: third, steps: 3, original: {warm_up: false}, options: {few: {steps: 2}}}\n";
  ASSERT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "third", "--mode", "both",
                 "--num-runs", "2"}),
            0)
      << err_;
  std::vector<std::string> runs;
  for (const auto& request : requests_) {
    const auto& labels = request.labels();
    runs.push_back((labels.contains("bench_variant") ? labels.at("bench_variant") : "case") + " " +
                   labels.at("bench_run") + " " + labels.at("bench_warm_up"));
  }
  EXPECT_THAT(runs, testing::ElementsAre("original 1 no", "original 2 no", "case 1 yes",
                                         "case 2 yes", "few 1 yes", "few 2 yes"));
  EXPECT_THAT(calls, testing::ElementsAre("unload m after 1", "load m and wait"));
  const std::string markdown = Content(std::filesystem::path(Folder()) / "report.md");
  EXPECT_THAT(
      markdown,
      HasSubstr("| third | original | warm\\_up no | warm\\_up yes | 10.00 | 2: 10.00 to 10.00 s | "
                "10.00 | 2: 10.00 to 10.00 s | not told apart from noise: the two sides "
                "overlap | latents: same bits; frames: same bits |"));
  EXPECT_THAT(markdown, HasSubstr("| Warm-up | warm\\_up, warm\\_up\\_shapes | after a warm-up | "
                                  "not told apart from noise |"));
}

TEST_F(BenchTest, AModelThatCannotBeLoadedAgainHasOneColdRun) {
  server_.scripts.unload_model = [](const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "you may not");
  };
  std::ofstream(cases_, std::ios::app) << "  - {name: third, options: {cold: {warm_up: false}}}\n";
  EXPECT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "third", "--num-runs", "2"}), 4);
  EXPECT_EQ(requests_.size(), 3u);
  EXPECT_THAT(err_, HasSubstr("third (cold), run 2 of 2: PERMISSION_DENIED: a cold run needs its "
                              "model loaded again, which failed: you may not"));
  EXPECT_THAT(Content(std::filesystem::path(Folder()) / "report.md"), HasSubstr("| 1 of 2 |"));
}

TEST_F(BenchTest, AfterAWarmUpRunsAreWarm) {
  ASSERT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "first", "--warm-up", "1"}), 0);
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_FALSE(requests_[0].labels().contains("bench_warm_up"));
  EXPECT_EQ(requests_[1].labels().at("bench_warm_up"), "yes");
}

// A second server, whose settings differ: jobs take half the time there, and their latents differ.
class BenchOnTwoServersTest : public BenchTest {
 protected:
  BenchOnTwoServersTest() {
    other_.scripts.get_server_info = [](const auto&, wan::v1::ServerInfo*) {
      return grpc::Status::OK;
    };
    other_.scripts.create_job = [this](const wan::v1::CreateJobRequest& request,
                                       wan::v1::Job* job) {
      others_requests_.push_back(request.request());
      job->set_name("jobs/" + std::to_string(others_requests_.size()));
      return grpc::Status::OK;
    };
    wan::v1::Artifact artifact;
    artifact.set_name("jobs/1/artifacts/latents.safetensors");
    artifact.set_kind(wan::v1::OUTPUT_KIND_LATENTS);
    other_.scripts.watch_job = [this, artifact](const wan::v1::WatchJobRequest&) {
      return fakes::Stream<wan::v1::Event>{.messages = {CompletedWith(1, {artifact})}};
    };
    other_.scripts.download = [](const wan::v1::DownloadArtifactRequest& request) {
      wan::v1::DownloadArtifactResponse chunk;
      chunk.set_offset(request.offset());
      chunk.set_data(Latents({3, 4.5}).substr(request.offset()));
      return fakes::Stream<wan::v1::DownloadArtifactResponse>{.messages = {chunk}};
    };
    other_.scripts.get_report = [this](const wan::v1::GetReportRequest& request,
                                       wan::v1::JobReport* report) {
      report->set_job(request.job());
      *report->mutable_request() = others_requests_[std::stoul(request.job().substr(5)) - 1];
      report->set_dtype("bf16");
      auto* total = report->add_stages();
      total->set_stage("Total_Execution");
      total->set_seconds(5);
      return grpc::Status::OK;
    };
  }

  fakes::ScriptedServer other_;
  std::vector<wan::v1::GenerationRequest> others_requests_;
};

TEST_F(BenchOnTwoServersTest, EachVariantRunsWhereItsSettingsAre) {
  ASSERT_EQ(
      Run({"bench", cases_, "--output", Folder(), "--only", "first", "--num-runs", "2", "--mode",
           "both", "--original-server", other_.address(), "--compare", "bf16=" + other_.address()}),
      0)
      << err_;
  ASSERT_EQ(requests_.size(), 2u) << "the case itself";
  ASSERT_EQ(others_requests_.size(), 4u);
  EXPECT_EQ(others_requests_[0].labels().at("bench_variant"), "bf16");
  EXPECT_EQ(others_requests_[0].vae_precision(), wan::v1::VAE_PRECISION_UNSPECIFIED);
  EXPECT_EQ(others_requests_[2].labels().at("bench_variant"), "original");
  EXPECT_EQ(others_requests_[2].vae_precision(), wan::v1::VAE_PRECISION_FP32);
  EXPECT_EQ(others_requests_[0].seed(), requests_[0].seed());
  const std::string markdown = Content(std::filesystem::path(Folder()) / "report.md");
  EXPECT_THAT(markdown,
              HasSubstr("| first | bf16 | dtype fp32 | dtype bf16 | 10.00 | 2: 10.00 to 10.00 s | "
                        "5.00 | 2: 5.00 to 5.00 s | 5.00 | 2.00 | faster | latents differ by 0.1 "
                        "(relative); frames: not compared |"));
  EXPECT_THAT(markdown, HasSubstr("| 5.00 | 2: 5.00 to 5.00 s | 10.00 | 2: 10.00 to 10.00 s | "
                                  "-5.00 | 0.50 | slower |"))
      << "'original' comes first";
}

TEST_F(BenchOnTwoServersTest, AServerThatDoesNotAnswerIsToldBeforeTheFirstJob) {
  other_.scripts.get_server_info = [](const auto&, wan::v1::ServerInfo*) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "away");
  };
  EXPECT_EQ(Run({"bench", cases_, "--output", Folder(), "--compare", "bf16=" + other_.address()}),
            6);
  EXPECT_THAT(err_, HasSubstr("the server of --compare 'bf16', " + other_.address() +
                              ", does not answer: "));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(BenchTest, ServersThatWouldNotBeAskedAreRefused) {
  const struct {
    std::vector<std::string> flags;
    const char* message;
  } kWrong[] = {
      {{"--compare", "x=a:1", "--compare", "x=b:1"}, "--compare gives 'x' twice"},
      {{"--compare", "original=a:1"}, "--compare cannot name an option 'original'"},
      {{"--compare", "few=a:1"}, "which is an option of case 'third', too"},
      {{"--mode", "original", "--compare", "x=a:1"}, "--compare needs --mode optimized or both"},
      {{"--original-server", "a:1"}, "--original-server needs --mode original or both"},
  };
  std::ofstream(cases_, std::ios::app) << "  - {name: third, options: {few: {steps: 3}}}\n";
  for (const auto& wrong : kWrong) {
    std::vector<std::string> args = {"bench", cases_, "--output", Folder()};
    args.insert(args.end(), wrong.flags.begin(), wrong.flags.end());
    EXPECT_EQ(Run(args), 2) << wrong.message;
    EXPECT_THAT(err_, HasSubstr(wrong.message));
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(BenchTest, ACaseThatFailsIsNamedAndTheOthersRun) {
  fails_ = 1;
  EXPECT_EQ(Run({"bench", cases_, "--output", Folder(), "--num-runs", "2"}), 4);
  EXPECT_EQ(requests_.size(), 3u) << "the failed case is not run again";
  EXPECT_THAT(Content(std::filesystem::path(Folder()) / "report.md"), HasSubstr("no luck"));
  EXPECT_THAT(out_, HasSubstr("second"));
}

TEST_F(BenchTest, OnlyAndWrongNames) {
  EXPECT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "second"}), 0);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].steps(), 2);
  EXPECT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "third"}), 2);
  EXPECT_THAT(err_, HasSubstr("--only names 'third'; the cases are first, second"));
  EXPECT_EQ(Run({"bench", "nowhere.yaml", "--output", Folder()}), 2);
  EXPECT_THAT(err_, HasSubstr("neither demo nor seeds nor a file"));
  EXPECT_EQ(Run({"bench", cases_, "--output", cases_ + "/x"}), 2);
  EXPECT_THAT(err_, HasSubstr("cannot be created"));
  EXPECT_EQ(requests_.size(), 1u) << "no job before the command line is right";
}

TEST_F(BenchTest, CeilingsAreFoundByTheCardsName) {
  gpu_ = "NVIDIA Test";
  requests_.resize(1);
  const std::vector<std::string> report = {"report", "1",      "--format",
                                           "text",   "--part", "bottlenecks"};
  ASSERT_EQ(Run(report), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("The ceilings of this device are not known"));

  const std::filesystem::path kept = folder_ / "data" / "wanserve" / "ceilings";
  std::filesystem::create_directories(kept);
  const auto write = [](const std::filesystem::path& path, const std::string& measured_at) {
    std::ofstream(path) << R"({"format": "wanserve-ceilings", "version": 1, "device": "NVIDIA Test",
      "measured_at": ")" << measured_at
                        << R"(", "products_flop_per_second": {"bf16": 6e14},
      "attention_flop_per_second": {}, "memory_bytes_per_second": 4e12})";
  };
  write(kept / "NVIDIA-Test.json", "2026-01-01");
  ASSERT_EQ(Run(report), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("NVIDIA Test, 2026-01-01"));

  // The one that is named comes first.
  const std::filesystem::path named = folder_ / "named.json";
  write(named, "2026-02-02");
  std::vector<std::string> with_file = report;
  with_file.insert(with_file.end(), {"--ceilings", named.string()});
  ASSERT_EQ(Run(with_file), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("NVIDIA Test, 2026-02-02"));
  EXPECT_THAT(out_, Not(HasSubstr("2026-01-01")));

  // The same for a benchmark's reports.
  requests_.clear();
  ASSERT_EQ(Run({"bench", cases_, "--output", Folder(), "--only", "first"}), 0) << err_;
  EXPECT_THAT(Content(std::filesystem::path(Folder()) / "report.md"),
              HasSubstr("NVIDIA Test, 2026-01-01"));

  // A file that is none is said, and the report is made without it.
  std::ofstream(kept / "NVIDIA-Test.json") << "{}";
  requests_.resize(1);
  ASSERT_EQ(Run(report), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("NVIDIA-Test.json has no ceilings"));
  EXPECT_THAT(out_, HasSubstr("The ceilings of this device are not known"));
}

TEST_F(BenchTest, ReportTakesSeveralJobsAndWritesFiles) {
  requests_.resize(2);
  ASSERT_EQ(Run({"report", "1", "2"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("jobs/1  "));
  EXPECT_THAT(out_, HasSubstr("jobs/2  "));
  const std::string html = (folder_ / "r.html").string();
  ASSERT_EQ(Run({"report", "1", "--output", html}), 0) << err_;
  EXPECT_THAT(Content(html), HasSubstr("<!doctype html>"));
  EXPECT_EQ(out_, "");
  const std::filesystem::path all = folder_ / "all";
  ASSERT_EQ(Run({"report", "1", "2", "--output", all.string() + "/"}), 0) << err_;
  EXPECT_THAT(Content(all / "report.html"), HasSubstr("<!doctype html>"));
  EXPECT_THAT(Content(all / "report.md"), HasSubstr("(plots/"));
  EXPECT_THAT(Content(all / "report.json"), HasSubstr("\"runs\""));
  EXPECT_FALSE(std::filesystem::is_empty(all / "plots"));
  EXPECT_EQ(Run({"report", "1", "--output", all.string(), "--format", "html"}), 2);
  EXPECT_THAT(err_, HasSubstr("is a folder, which gets every format"));
  EXPECT_EQ(Run({"report", "1", "--output", (folder_ / "no" / "r.html").string()}), 2);
  EXPECT_EQ(Run({"report", "1", "--ceilings", cases_}), 2);
  EXPECT_THAT(err_, HasSubstr("has no ceilings"));
}

}  // namespace
}  // namespace wan::client
