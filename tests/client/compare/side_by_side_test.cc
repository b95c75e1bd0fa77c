#include "client/compare/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/media/video_reader.h"
#include "tests/client/compare/test_video.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using testing::HasSubstr;

class SideBySideTest : public testing::Test {
 protected:
  // The video that shows both beside each other.
  VideoClip Beside(const fakes::TestVideo& a, const fakes::TestVideo& b) {
    fakes::WriteTestVideo(folder_ / "a.mkv", a);
    fakes::WriteTestVideo(folder_ / "b.mkv", b);
    const auto comparison = CompareVideos(Path("a.mkv"), Path("b.mkv"));
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    gain_ = DifferenceGain(*comparison);
    const absl::Status status =
        WriteSideBySide(Path("a.mkv"), Path("b.mkv"), *comparison, gain_, Path("ab.mp4"));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "ab.mp4.part"));
    return ReadVideo(Path("ab.mp4")).value();
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Mean distance between a field of a frame and `expected`, in values of 8 bits.
  static double Distance(const VideoClip& clip, int frame, int field, int width, int height,
                         const std::vector<uint8_t>& expected) {
    double sum = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width * 3; ++x) {
        const size_t at = ((static_cast<size_t>(frame) * clip.height + y) * clip.width +
                           static_cast<size_t>(field) * (width + 4)) *
                              3 +
                          x;
        sum += std::abs(clip.rgb[at] - expected[static_cast<size_t>(y) * width * 3 + x]);
      }
    }
    return sum / (width * height * 3);
  }

  const fakes::TempFolder folder_;
  int gain_ = 0;
};

TEST_F(SideBySideTest, ShowsBothAndTheirDifference) {
  const VideoClip clip = Beside({.frames = 6}, {.frames = 6, .grain = 10});
  EXPECT_EQ(clip.width, 3 * 64 + 2 * 4);
  EXPECT_EQ(clip.height, 48);
  EXPECT_EQ(clip.frames, 6);
  EXPECT_EQ(gain_, 8) << "noise from -10 to 10 has a root mean square near 6";
  const std::vector<uint8_t> a = fakes::TestFrame(64, 48, 5, 0),
                             b = fakes::TestFrame(64, 48, 5, 10);
  std::vector<uint8_t> difference;
  for (size_t i = 0; i < a.size(); ++i) {
    difference.push_back(static_cast<uint8_t>(std::min(255, 8 * std::abs(a[i] - b[i]))));
  }
  // Halved chroma and compression leave most of it.
  EXPECT_LT(Distance(clip, 5, 0, 64, 48, a), 12);
  EXPECT_LT(Distance(clip, 5, 1, 64, 48, b), 12);
  EXPECT_LT(Distance(clip, 5, 2, 64, 48, difference), 30);
  EXPECT_GT(Distance(clip, 5, 2, 64, 48, a), 50) << "the third field is another picture";
}

TEST_F(SideBySideTest, EqualVideosHaveNoThirdFieldAndOddSidesAreFilledUp) {
  const fakes::TestVideo video{.width = 33, .height = 17, .frames = 2};
  const VideoClip clip = Beside(video, video);
  EXPECT_EQ(gain_, 0);
  EXPECT_EQ(clip.width, 2 * 33 + 4);
  EXPECT_EQ(clip.height, 18);
}

TEST_F(SideBySideTest, TheGainFollowsTheDifference) {
  const auto gain = [](double psnr) {
    VideoComparison comparison;
    comparison.frames.push_back({.psnr = psnr});
    return DifferenceGain(comparison);
  };
  EXPECT_EQ(gain(60), 64);
  EXPECT_EQ(gain(40), 16);
  EXPECT_EQ(gain(30), 8);
  EXPECT_EQ(gain(20), 2);
  EXPECT_EQ(gain(5), 1);
}

TEST_F(SideBySideTest, AFolderThatIsNotThereIsNamed) {
  fakes::WriteTestVideo(folder_ / "a.mkv", {});
  const auto comparison = CompareVideos(Path("a.mkv"), Path("a.mkv"));
  const absl::Status status =
      WriteSideBySide(Path("a.mkv"), Path("a.mkv"), *comparison, 0, Path("none/ab.mp4"));
  EXPECT_THAT(status.message(), HasSubstr("none/ab.mp4"));
}

}  // namespace
}  // namespace wan::client
