#include "demo/evaluate/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::demo {
namespace {

using testing::HasSubstr;
using testing::Not;

VideoResult Result(double create, double start, double end) {
  return {.job = "jobs/a", .create_time = create, .start_time = start, .end_time = end};
}

TEST(Report, VideosPerMinuteOfOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(VideosPerMinute({Result(0, 0, 2), Result(0, 2, 4), Result(0, 4, 6)}), 30);
}

TEST(Report, SmallGapsCountAndPausesDoNot) {
  EXPECT_DOUBLE_EQ(VideosPerMinute({Result(0, 0, 2), Result(0, 4, 6)}), 20);
  EXPECT_DOUBLE_EQ(VideosPerMinute({Result(0, 1000, 1002), Result(0, 0, 2)}), 30);
}

TEST(Report, WorkSideBySideCountsOnce) {
  EXPECT_DOUBLE_EQ(VideosPerMinute({Result(0, 0, 4), Result(0, 0, 4), Result(0, 1, 3)}), 45);
  EXPECT_DOUBLE_EQ(VideosPerMinute({}), 0);
}

class ReportTableTest : public testing::Test {
 protected:
  ReportTableTest() {
    scene_ = {.id = "s",
              .caption = "c",
              .background = "black",
              .objects = {{"red", "square", "up", "left"}}};
    for (const VideoMode mode : {VideoMode::kTextToVideo, VideoMode::kImageToVideo}) {
      for (int i = 0; i < 2; ++i) plan_.push_back({.key = "k", .mode = mode, .scene = &scene_});
    }
    for (const PlannedVideo& video : plan_) {
      VideoResult result = Result(10, 12, 13);
      result.sight = {"black", {{"red", "square", "down", "left", 0.9, 1}}};
      outcomes_.push_back({.video = &video, .result = result, .error = {}});
    }
    outcomes_[2].result->first_frame_psnr = 36;
    outcomes_[3].result->first_frame_psnr = 40;
  }

  Scene scene_;
  std::vector<PlannedVideo> plan_;
  std::vector<VideoOutcome> outcomes_;
};

TEST_F(ReportTableTest, ShowsSharesFirstFramesAndLoad) {
  outcomes_[0].result->sight.objects[0].motion = "up";
  outcomes_[1].result->sight.background = "white";
  outcomes_[2].result->sight.objects.push_back({"blue", "circle", "up", "right", 0.9, 1});
  const nlohmann::ordered_json report = MakeReport({{"seed", 1}}, outcomes_);
  EXPECT_EQ(report["settings"]["seed"], 1);
  EXPECT_EQ(report["clips"].size(), 4u);
  EXPECT_EQ(report["clips"][0]["queue_seconds"], 2.0);
  const std::string table = ReportTable(report);
  EXPECT_THAT(table, HasSubstr("| text to video: colour | 100.0 % (2 of 2) |  |"));
  EXPECT_THAT(table, HasSubstr("| text to video: motion | 50.0 % (1 of 2) |  |"));
  EXPECT_THAT(table, HasSubstr("| text to video: background | 50.0 % (1 of 2) |  |"));
  EXPECT_THAT(table, HasSubstr("| text to video: count | 100.0 % (2 of 2) |  |"));
  EXPECT_THAT(table, HasSubstr("| image to video: motion | 0.0 % (0 of 2) |  |"));
  EXPECT_THAT(table, HasSubstr("| image to video: count | 50.0 % (1 of 2) |  |"));
  EXPECT_THAT(table, HasSubstr("| image to video: first frame | 38.0 dB, worst 36.0 |  |"));
  EXPECT_THAT(table, HasSubstr("| videos | 4 (and 0 not made) |"));
  EXPECT_THAT(table, HasSubstr("| videos per minute | 240.0 |"));
  EXPECT_THAT(table, HasSubstr("| mean wait in the queue | 2.0 s |"));
  EXPECT_THAT(table, HasSubstr("| mean time of a job | 1.00 s |"));
}

TEST_F(ReportTableTest, AnOutlineThatNoFrameShowsIsLeftOut) {
  outcomes_[0].result->sight.objects[0].outline = {0.98, 0.96};
  const nlohmann::ordered_json clips = MakeReport({}, outcomes_)["clips"];
  EXPECT_EQ(clips[0]["objects"][0]["seen"]["outline_tenth"], 0.96);
  const nlohmann::ordered_json& unread = clips[1]["objects"][0]["seen"];
  EXPECT_EQ(unread["shape"], "square");
  EXPECT_FALSE(unread.contains("outline_median"));
  EXPECT_FALSE(unread.contains("outline_tenth"));
}

TEST_F(ReportTableTest, WhatWasNotMadeIsListedAndNotJudged) {
  outcomes_[1].result.reset();
  outcomes_[1].error = absl::InternalError("out of paint");
  const nlohmann::ordered_json report = MakeReport({}, outcomes_);
  EXPECT_EQ(report["text"]["one"]["colour"]["of"], 1);
  EXPECT_EQ(report["load"]["failed"], 1);
  EXPECT_EQ(report["failed"][0]["id"], "s");
  EXPECT_THAT(report["failed"][0]["error"].get<std::string>(), HasSubstr("out of paint"));
}

TEST_F(ReportTableTest, WithoutVideosThereAreNoTimes) {
  for (VideoOutcome& outcome : outcomes_) outcome.result.reset();
  const std::string table = ReportTable(MakeReport({}, outcomes_));
  EXPECT_THAT(table, HasSubstr("| videos | 0 (and 4 not made) |"));
  EXPECT_THAT(table, Not(HasSubstr("per minute")));
}

TEST(Report, SettingsTellRunsApart) {
  RunOptions options{.server = "a:1", .output = "x", .model = "demo"};
  const nlohmann::ordered_json settings = SettingsOf(options, "aa");
  options.server = "b:2";
  options.output = "y";
  EXPECT_EQ(SettingsOf(options, "aa"), settings);
  EXPECT_NE(SettingsOf(options, "bb"), settings);
  options.guidance = 1;
  EXPECT_NE(SettingsOf(options, "aa"), settings);
}

}  // namespace
}  // namespace wan::demo
