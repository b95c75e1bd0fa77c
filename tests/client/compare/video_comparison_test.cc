#include "client/compare/video_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/compare/test_video.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using fakes::TestFrame;
using fakes::TestVideo;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class VideoComparisonTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const TestVideo& video) {
    fakes::WriteTestVideo(folder_ / name, video);
    return (folder_ / name).string();
  }

  const fakes::TempFolder folder_;
};

TEST_F(VideoComparisonTest, EachFrameIsComparedWithItsOwn) {
  const std::string a = Write("a.mkv", {.frames = 7});
  const std::string b = Write("b.mkv", {.frames = 7, .grain = 10, .grain_from = 3});
  int done = 0;
  const auto comparison = CompareVideos(a, b, [&](int frames) { done = frames; });
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(done, 7);
  EXPECT_EQ(comparison->shape.width, 64);
  EXPECT_EQ(comparison->shape.height, 48);
  EXPECT_EQ(comparison->shape.frames, 7);
  EXPECT_EQ(comparison->shape.fps, 16);
  ASSERT_EQ(comparison->frames.size(), 7u);
  EXPECT_EQ(comparison->identical(), 3);
  for (int t = 0; t < 7; ++t) {
    const FrameMetrics alone =
        MeasureFrame(TestFrame(64, 48, t, 0), TestFrame(64, 48, t, t < 3 ? 0 : 10), 64, 48);
    EXPECT_EQ(comparison->frames[t].psnr, alone.psnr) << "the same digits each time";
    EXPECT_EQ(comparison->frames[t].ssim, alone.ssim);
    EXPECT_EQ(comparison->frames[t].ms_ssim, alone.ms_ssim);
  }
}

TEST_F(VideoComparisonTest, TheWorstFrameIsTheFirstOfThem) {
  VideoComparison comparison;
  for (const double psnr : {40.0, 30.0, 50.0, 30.0}) comparison.frames.push_back({.psnr = psnr});
  const MetricSummary summary = Summarize(comparison, &FrameMetrics::psnr);
  EXPECT_EQ(summary.mean, 37.5);
  EXPECT_EQ(summary.worst, 30);
  EXPECT_EQ(summary.worst_frame, 1);
}

TEST_F(VideoComparisonTest, OtherSizesAndRatesAreNamedTogether) {
  const absl::Status status =
      CompareVideos(Write("a.mkv", {}), Write("b.mkv", {.width = 48, .height = 64, .fps = 24}))
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("\n  size: is 64x48 in A and 48x64 in B; must be the same in both, "
                              "for example B made with --size 64x48"),
                    HasSubstr("\n  fps: is 16 in A and 24 in B; "), Not(HasSubstr("frames: is"))));
}

TEST_F(VideoComparisonTest, OtherLengthsAreCountedToTheEnd) {
  const std::string a = Write("a.mkv", {.frames = 9}), b = Write("b.mp4", {.frames = 40});
  for (const absl::Status& status : {CompareVideos(a, b).status(), CompareVideos(b, a).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  EXPECT_THAT(
      CompareVideos(a, b).status().message(),
      HasSubstr("frames: is 9 in A and 40 in B; must be the same in both, for example B made "
                "with --frames 9"));
}

TEST_F(VideoComparisonTest, UnknownsAreNotCompared) {
  EXPECT_TRUE(CheckComparable({64, 48, 0, 16}, {64, 48, 9, 0}).ok());
  EXPECT_TRUE(CheckComparable({64, 48, 9, 23.976}, {64, 48, 9, 24000.0 / 1001}).ok());
  EXPECT_FALSE(CheckComparable({64, 48, 9, 23.976}, {64, 48, 9, 24}).ok());
}

TEST_F(VideoComparisonTest, AFileThatIsNoVideoIsNamed) {
  const std::string a = Write("a.mkv", {});
  fakes::WriteFile(folder_ / "b.mkv", "text");
  const absl::Status status = CompareVideos(a, (folder_ / "b.mkv").string()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("b.mkv"));
}

TEST_F(VideoComparisonTest, AStopEndsIt) {
  std::stop_source stop;
  stop.request_stop();
  const std::string a = Write("a.mkv", {});
  EXPECT_TRUE(absl::IsCancelled(CompareVideos(a, a, nullptr, stop.get_token()).status()));
}

}  // namespace
}  // namespace wan::client
