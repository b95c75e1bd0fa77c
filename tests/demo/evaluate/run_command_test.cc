// Whole command lines of `demo_evaluate run` and `compare`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "demo/evaluate/commands.h"
#include "engine/media/image_encode.h"
#include "tests/client/fakes/recording_backoff_clock.h"
#include "tests/client/fakes/temp_folder.h"
#include "tests/demo/evaluate/painting_server.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const PaintedObject kRedSquare{.colour = "red", .shape = "square", .motion = "up"};
const PaintedObject kBlueStar{.colour = "blue", .shape = "star", .motion = "spin", .x = 150};

// "a", whose video is right; "b", whose video shows another shape; "c", which has none.
class RunCommandTest : public testing::Test {
 protected:
  RunCommandTest() {
    server_.Paint("caption a", {.objects = {kRedSquare}});
    PaintedObject wrong = kBlueStar;
    wrong.shape = "triangle";
    server_.Paint("caption b", {.background = "grey", .objects = {wrong}});
    WriteScenes({SceneLine("a", "black", kRedSquare), SceneLine("b", "grey", kBlueStar)});
  }

  static std::string SceneLine(const std::string& id, const std::string& background,
                               const PaintedObject& object) {
    return Json({{"id", id},
                 {"caption", "caption " + id},
                 {"background", background},
                 {"objects",
                  {{{"shape", object.shape},
                    {"colour", object.colour},
                    {"motion", object.motion},
                    {"side", object.x < 128 ? "left" : "right"}}}},
                 {"image", id + ".png"}})
        .dump();
  }

  void WriteScenes(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    fakes::WriteFile(folder_ / "scenes.jsonl", text);
  }

  int Execute(const std::vector<std::string>& args) {
    std::ostringstream out, err;
    const int code =
        RunDemoEvaluate(args, {.out = out, .err = err, .stop = stop_.get_token(), .clock = clock_});
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  int Run(const std::vector<std::string>& more = {}, const std::string& output = "run") {
    std::vector<std::string> args = {"run",       "--server", server_.address(),    "--model",
                                     "demo",      "--scenes", Path("scenes.jsonl"), "--output",
                                     Path(output)};
    args.insert(args.end(), more.begin(), more.end());
    return Execute(args);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  Json Report(const std::string& output = "run") const {
    return Json::parse(fakes::ReadFile(Path(output) + "/report.json"));
  }

  const fakes::TempFolder folder_;
  PaintingServer server_;
  fakes::RecordingBackoffClock clock_;
  std::stop_source stop_;
  std::string out_;
  std::string err_;
};

TEST_F(RunCommandTest, JudgesWhatTheServerMakes) {
  ASSERT_EQ(Run({"--guidance", "2.5", "--seed", "40", "--solver", "euler", "--note", "as it is"}),
            client::kExitDone)
      << err_;
  EXPECT_THAT(out_, HasSubstr("| text to video: colour | 100.0 % (2 of 2) |  |"));
  EXPECT_THAT(out_, HasSubstr("| text to video: shape | 50.0 % (1 of 2) |  |"));
  EXPECT_EQ(fakes::ReadFile(Path("run") + "/report.md"), out_);

  const Json report = Report();
  EXPECT_EQ(report["settings"]["guidance"], 2.5);
  EXPECT_EQ(report["settings"]["note"], "as it is");
  EXPECT_EQ(report["resolved"]["steps"], 20);
  EXPECT_EQ(report["resolved"]["solver"], "SOLVER_EULER");
  EXPECT_FALSE(report["resolved"].contains("seed"));
  EXPECT_EQ(report["clips"][0]["seed"], 40);
  EXPECT_EQ(report["clips"][1]["seed"], 41);
  EXPECT_EQ(report["clips"][1]["objects"][0]["seen"]["shape"], "triangle");
  EXPECT_EQ(report["clips"][1]["queue_seconds"], 102.0);
  // Two videos, from second 200 to second 203.
  EXPECT_EQ(report["load"]["videos_per_minute"], 40.0);
  EXPECT_THAT(report["failed"], IsEmpty());

  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[1].model(), "demo");
  EXPECT_EQ(requests[1].prompt(), "caption b");
  EXPECT_EQ(requests[1].seed(), 41);
  EXPECT_EQ(requests[1].image(), "");
  EXPECT_THAT(requests[1].outputs(), ElementsAre(wan::v1::OUTPUT_KIND_LOSSLESS_MKV));
  EXPECT_FALSE(requests[1].has_steps());
}

TEST_F(RunCommandTest, SendsTheScenesNegativePromptsUnlessTheRunHasItsOwnOrNone) {
  const std::string path = Path("scenes.jsonl");
  fakes::WriteFile(path, absl::StrReplaceAll(
                             fakes::ReadFile(path),
                             {{"\"caption b\"", "\"caption b\",\"negative_prompt\":\"a star\""}}));
  ASSERT_EQ(Run(), client::kExitDone) << err_;
  ASSERT_EQ(Run({"--negative-prompt", "noise"}, "own"), client::kExitDone) << err_;
  ASSERT_EQ(Run({"--without-negative-prompts"}, "none"), client::kExitDone) << err_;
  EXPECT_TRUE(Report("none")["settings"]["without_negative_prompts"]);

  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(6));
  EXPECT_FALSE(requests[0].has_negative_prompt());
  EXPECT_EQ(requests[1].negative_prompt(), "a star");
  EXPECT_EQ(requests[2].negative_prompt(), "noise");
  EXPECT_EQ(requests[3].negative_prompt(), "noise");
  EXPECT_FALSE(requests[5].has_negative_prompt());
}

TEST_F(RunCommandTest, StartsFromFirstFrames) {
  std::filesystem::create_directory(folder_ / "first_frames");
  std::vector<uint8_t> clip = Paint({.objects = {kRedSquare}});
  clip.resize(clip.size() / kPaintedFrames);
  const std::string image = *EncodePng(clip, kPaintedSize, kPaintedSize);
  fakes::WriteFile(folder_ / "first_frames/a.png", image);
  for (uint8_t& value : clip) value = value > 127 ? value - 1 : value + 1;
  fakes::WriteFile(folder_ / "first_frames/b.png", *EncodePng(clip, kPaintedSize, kPaintedSize));
  server_.Paint("caption b", {.objects = {kRedSquare}});

  ASSERT_EQ(Run({"--mode", "both"}), client::kExitDone) << err_;
  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(4));
  EXPECT_EQ(requests[0].image(), "");
  EXPECT_EQ(requests[2].image(), image);
  EXPECT_EQ(requests[2].seed(), requests[0].seed());
  const Json report = Report();
  EXPECT_EQ(report["clips"][2]["mode"], "image");
  EXPECT_EQ(report["clips"][2]["first_frame_psnr"], 100.0);
  EXPECT_NEAR(report["clips"][3]["first_frame_psnr"].get<double>(), 48.13, 0.01);
  EXPECT_THAT(out_, HasSubstr("| image to video: first frame | 74.1 dB, worst 48.1 |  |"));
}

TEST_F(RunCommandTest, NamesAMissingImage) {
  EXPECT_EQ(Run({"--mode", "image"}), client::kExitUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("first_frames/a.png"), HasSubstr("scene 'a'"),
                          HasSubstr("must be a folder with the scenes' first frames")));
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(RunCommandTest, KeepsTheQueueFullAndNoFuller) {
  std::vector<std::string> lines;
  for (int i = 0; i < 7; ++i) {
    lines.push_back(SceneLine("a" + std::to_string(i), "black", kRedSquare));
    server_.Paint("caption a" + std::to_string(i), {.objects = {kRedSquare}});
  }
  WriteScenes(lines);
  server_.set_places(3);
  ASSERT_EQ(Run(), client::kExitDone) << err_;
  EXPECT_EQ(server_.most_waiting(), 3u);
  EXPECT_EQ(Report()["load"]["videos"], 7);
  // With jobs of its own to wait for it need not wait for a place.
  EXPECT_THAT(clock_.delays, IsEmpty());

  ASSERT_EQ(Run({"--concurrency", "2", "--priority", "5"}, "another"), client::kExitDone) << err_;
  EXPECT_EQ(server_.requests().back().priority(), 5);
  // Clip and place are in the order of the file, whichever was looked at first.
  EXPECT_EQ(Report("another")["clips"][6]["id"], "a6");
}

TEST_F(RunCommandTest, LimitsTheJobsWithTheServer) {
  ASSERT_EQ(Run({"--concurrency", "1"}), client::kExitDone) << err_;
  EXPECT_EQ(server_.most_waiting(), 1u);
}

TEST_F(RunCommandTest, WaitsAsLongAsTheServerSays) {
  server_.set_loading(2);
  ASSERT_EQ(Run(), client::kExitDone) << err_;
  EXPECT_THAT(clock_.delays, ElementsAre(absl::Seconds(3), absl::Seconds(3)));

  // The queue is full of others' jobs; one of them ends while we wait.
  server_.set_places(0);
  clock_.delays.clear();
  clock_.on_wait = [this] { server_.set_places(1); };
  ASSERT_EQ(Run({}, "another"), client::kExitDone) << err_;
  EXPECT_THAT(clock_.delays, ElementsAre(absl::Seconds(3)));
}

TEST_F(RunCommandTest, GoesOnWhereItStopped) {
  ASSERT_EQ(Run(), client::kExitDone) << err_;
  const std::string report = fakes::ReadFile(Path("run/report.json"));
  // As if it had been killed before the second video was looked at.
  std::filesystem::remove(Path("run/seen/text-b.json"));
  std::filesystem::remove(Path("run/videos/text-b.mkv"));
  std::filesystem::remove(Path("run/report.json"));
  ASSERT_EQ(Run(), client::kExitDone) << err_;
  EXPECT_THAT(err_, HasSubstr("1 of 2 videos are there already"));
  EXPECT_EQ(fakes::ReadFile(Path("run/report.json")), report);
  EXPECT_THAT(server_.requests(), SizeIs(2)) << "the job was there; no second one is made";

  EXPECT_EQ(Run({"--steps", "10"}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("has a run with other settings"));
}

TEST_F(RunCommandTest, TellsOfVideosThatWereNotMade) {
  WriteScenes({SceneLine("a", "black", kRedSquare), SceneLine("c", "black", kRedSquare)});
  EXPECT_EQ(Run(), client::kExitFailed);
  EXPECT_THAT(err_, HasSubstr("text-c  no video: no paint"));
  const Json report = Report();
  EXPECT_EQ(report["load"]["failed"], 1);
  EXPECT_EQ(report["failed"][0]["id"], "c");
  EXPECT_EQ(report["text"]["one"]["colour"]["of"], 1);
}

TEST_F(RunCommandTest, EndsWithTheServersRefusal) {
  server_.scripts().create_job = [](const wan::v1::CreateJobRequest&, wan::v1::Job*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no model 'demo'");
  };
  EXPECT_EQ(Run(), client::kExitRejected);
  EXPECT_THAT(err_, HasSubstr("there is no model 'demo'"));
  EXPECT_FALSE(std::filesystem::exists(Path("run/report.json")));
}

TEST_F(RunCommandTest, EndsWhenAVideoIsBroken) {
  server_.scripts().download = [](const wan::v1::DownloadArtifactRequest&) {
    return fakes::Stream<wan::v1::DownloadArtifactResponse>{
        .messages = {}, .end = {grpc::StatusCode::NOT_FOUND, "the file is gone"}};
  };
  EXPECT_EQ(Run(), client::kExitRejected);
  EXPECT_THAT(err_, AllOf(HasSubstr("the file is gone"), HasSubstr("goes on with what is in")));
}

TEST_F(RunCommandTest, EndsWhenItIsStopped) {
  server_.scripts().watch_job = [this](const wan::v1::WatchJobRequest&) {
    return fakes::Stream<wan::v1::Event>{
        .messages = {}, .hold = true, .on_hold = [this] { stop_.request_stop(); }};
  };
  EXPECT_EQ(Run(), client::kExitCancelled);
  EXPECT_THAT(err_, HasSubstr("interrupted"));
}

TEST_F(RunCommandTest, RefusesWrongCommandLines) {
  EXPECT_EQ(Run({"--mode", "sound"}), client::kExitUsage);
  EXPECT_EQ(Run({"--solver", "magic"}), client::kExitUsage);
  EXPECT_EQ(Run({"--concurrency", "0"}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("expects a whole number above 0, not '0'"));
  EXPECT_EQ(Run({"--seed", "-1"}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("expects a whole number from 0, so that the run can be repeated"));
  EXPECT_EQ(Run({"--size", "256"}), client::kExitUsage);
  EXPECT_EQ(Execute({"judge"}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("unknown command judge"));
  EXPECT_EQ(Execute({"run"}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("is required"));
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(RunCommandTest, ComparesTwoRuns) {
  ASSERT_EQ(Run(), client::kExitDone) << err_;
  server_.Paint("caption b", {.background = "grey", .objects = {kBlueStar}});
  ASSERT_EQ(Run({"--seed", "9"}, "another"), client::kExitDone) << err_;
  ASSERT_EQ(Execute({"compare", Path("run/report.json"), Path("another/report.json")}),
            client::kExitDone)
      << err_;
  EXPECT_THAT(out_, HasSubstr("| text, one object: shape | 2 | 50.0 % | 100.0 % |"));
  EXPECT_THAT(out_, HasSubstr("- text, one object: shape, better: b\n"));

  EXPECT_EQ(Execute({"compare", Path("run/report.json"), Path("scenes.jsonl")}),
            client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("scenes.jsonl is no report of demo_evaluate"));
  EXPECT_EQ(Execute({"compare", Path("none.json"), Path("scenes.jsonl")}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("cannot open " + Path("none.json")));
}

TEST_F(RunCommandTest, ShowsRunsAsColumnsWithThePsnrOfTheirVideos) {
  ASSERT_EQ(Run({"--quality", "exact"}, "exact"), client::kExitDone) << err_;
  EXPECT_EQ(server_.requests().back().quality(), wan::v1::QUALITY_EXACT);
  PaintedObject larger = kRedSquare;
  larger.radius += 4;
  server_.Paint("caption a", {.objects = {larger}});
  ASSERT_EQ(Run({"--quality", "high"}, "high"), client::kExitDone) << err_;
  EXPECT_EQ(server_.requests().back().quality(), wan::v1::QUALITY_HIGH);
  EXPECT_EQ(Report("high")["settings"]["quality"], "QUALITY_HIGH");

  ASSERT_EQ(Execute({"columns", Path("exact") + "/", Path("high")}), client::kExitDone) << err_;
  EXPECT_THAT(out_, HasSubstr("| measure | exact | high |\n"));
  EXPECT_THAT(out_, HasSubstr("| text: shape | 50.0 % (1 of 2) | 50.0 % (1 of 2) |\n"));
  // Video b is the same in both; 100 dB stand for equal pixels, so the worst is that of video a.
  EXPECT_THAT(out_, ContainsRegex("PSNR to exact \\|  \\| [5-7][0-9].* dB, worst [1-4][0-9]"));

  EXPECT_EQ(Execute({"columns", Path("exact")}), client::kExitUsage);
  EXPECT_EQ(Execute({"columns", Path("exact"), Path("none")}), client::kExitUsage);
  EXPECT_THAT(err_, HasSubstr("cannot open " + Path("none") + "/report.json"));
}

}  // namespace
}  // namespace wan::demo
