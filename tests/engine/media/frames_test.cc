#include "engine/media/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// DIFFERENCES 29: the fraction is cut off. Rounding would change half of all values.
TEST(Differences, Item29EightBitsAreCutNotRounded) {
  for (const char* name : {"ti2v-t2v", "ti2v-i2v"}) {
    const auto tensors =
        ReadRawTensors(std::string(WAN_GOLDEN_DIR) + "/pipelines/" + name + ".safetensors");
    const RawTensor& video = tensors.at("video");  // [3, T, H, W]
    const std::vector<float> values = video.As<float>();
    const std::vector<uint8_t> expected = tensors.at("video_u8").As<uint8_t>();
    const size_t frames = video.shape[1];
    const size_t pixels = video.shape[2] * video.shape[3];
    for (size_t t = 0; t < frames; ++t) {
      std::vector<float> planes;
      std::vector<uint8_t> golden(pixels * 3);
      for (size_t c = 0; c < 3; ++c) {
        const size_t from = (c * frames + t) * pixels;
        planes.insert(planes.end(), values.begin() + from, values.begin() + from + pixels);
        for (size_t i = 0; i < pixels; ++i) golden[3 * i + c] = expected[from + i];
      }
      std::vector<uint8_t> rgb24(pixels * 3);
      FloatToRgb24(planes, rgb24);
      ASSERT_THAT(rgb24, ElementsAreArray(golden)) << name << " frame " << t;
    }
  }
}

TEST(FloatToRgb24, ClampsAndInterleaves) {
  const std::vector<float> planes = {-1, -2, 1, 3, 0, 0.999f};  // two pixels: R, R, G, G, B, B
  std::vector<uint8_t> rgb24(6);
  FloatToRgb24(planes, rgb24);
  EXPECT_THAT(rgb24, ElementsAre(0, 255, 127, 0, 255, 254));
}

}  // namespace
}  // namespace wan
