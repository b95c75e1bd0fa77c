#include "client/compare/frame_strip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/media/image_decode.h"
#include "tests/client/compare/test_video.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

class FrameStripTest : public testing::Test {
 protected:
  std::vector<std::string> Strip(const fakes::TestVideo& video, int frames) {
    fakes::WriteTestVideo(folder_ / "a.mkv", video);
    const auto strip = FrameStrip((folder_ / "a.mkv").string(), frames);
    EXPECT_TRUE(strip.ok()) << strip.status();
    return strip.value_or(std::vector<std::string>());
  }

  const fakes::TempFolder folder_;
};

// The mean distance between a JPEG and the frame `t` of the video, in values of 8 bits.
double Distance(const std::string& jpeg, const fakes::TestVideo& video, int t) {
  const auto decoded = DecodeImage(jpeg);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  const std::vector<uint8_t> frame = fakes::TestFrame(video.width, video.height, t, 0);
  EXPECT_EQ(decoded->image.pixels.size(), frame.size());
  double sum = 0;
  for (size_t i = 0; i < frame.size(); ++i) sum += std::abs(decoded->image.pixels[i] - frame[i]);
  return sum / static_cast<double>(frame.size());
}

TEST_F(FrameStripTest, SpreadsFramesFromTheFirstToTheLast) {
  const fakes::TestVideo video{.frames = 21};
  const std::vector<std::string> strip = Strip(video, 21);
  ASSERT_EQ(strip.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    double nearest = 255;
    int which = -1;
    for (int t = 0; t < 21; ++t) {
      const double distance = Distance(strip[static_cast<size_t>(i)], video, t);
      if (distance < nearest) which = t;
      nearest = std::min(nearest, distance);
    }
    EXPECT_EQ(which, 4 * i);
  }
}

TEST_F(FrameStripTest, ShortVideosHaveFewerAndWideOnesSmallerFrames) {
  EXPECT_EQ(Strip({.frames = 5}, 5).size(), 5u);
  EXPECT_EQ(Strip({.frames = 1}, 1).size(), 1u);
  EXPECT_EQ(Strip({.frames = 3}, 9).size(), 2u) << "frames 0 and 1 of 0, 1, 3, 4, 6, 8";
  const std::vector<std::string> strip = Strip({.width = 640, .height = 352, .frames = 1}, 1);
  ASSERT_EQ(strip.size(), 1u);
  const auto decoded = DecodeImage(strip[0]);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->image.width, 256);
  EXPECT_EQ(decoded->image.height, 140);
  EXPECT_LT(strip[0].size(), 20'000u);
}

TEST_F(FrameStripTest, SaysWhatIsNoVideo) {
  fakes::WriteFile(folder_ / "a.mp4", "text");
  EXPECT_EQ(FrameStrip((folder_ / "a.mp4").string(), 5).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace wan::client
