#include "engine/media/image_encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "engine/media/image_decode.h"

namespace wan {
namespace {

using testing::HasSubstr;

RgbImage Noise(int width, int height, unsigned seed) {
  std::mt19937 random(seed);
  RgbImage image{width, height, std::vector<uint8_t>(static_cast<size_t>(width) * height * 3)};
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random());
  return image;
}

// Soft gradients, as a video's frame mostly is.
RgbImage Smooth(int width, int height) {
  RgbImage image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<uint8_t>(255 * x / width));
      image.pixels.push_back(static_cast<uint8_t>(255 * y / height));
      image.pixels.push_back(static_cast<uint8_t>(128 + 100 * std::sin(x / 20.0)));
    }
  }
  return image;
}

TEST(EncodePng, DecodesToTheSamePixels) {
  for (const auto& [width, height] : {std::pair(1, 1), {3, 2}, {17, 31}, {64, 48}, {641, 3}}) {
    const RgbImage image = Noise(width, height, 7);
    const auto file = EncodePng(image.pixels, width, height);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto decoded = DecodeImage(*file);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->image, image) << width << "x" << height;
  }
}

TEST(EncodeJpeg, DecodesToNearlyTheSamePixels) {
  for (const auto& [width, height] : {std::pair(64, 48), {33, 17}, {200, 1}}) {
    const RgbImage image = Smooth(width, height);
    const auto file = EncodeJpeg(image.pixels, width, height, 95);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto decoded = DecodeImage(*file);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(decoded->image.pixels.size(), image.pixels.size());
    double sum = 0;
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      sum += std::abs(decoded->image.pixels[i] - image.pixels[i]);
    }
    EXPECT_LT(sum / static_cast<double>(image.pixels.size()), 2) << width << "x" << height;
  }
}

TEST(EncodeJpeg, QualityCostsBytes) {
  const RgbImage image = Noise(64, 64, 3);
  const size_t low = EncodeJpeg(image.pixels, 64, 64, 10)->size();
  const size_t usual = EncodeJpeg(image.pixels, 64, 64)->size();
  const size_t high = EncodeJpeg(image.pixels, 64, 64, 100)->size();
  EXPECT_LT(low, usual);
  EXPECT_LT(usual, high);
}

TEST(Encode, SaysWhatIsWrong) {
  const std::vector<uint8_t> pixels(2 * 2 * 3);
  for (const auto encode :
       {+[](std::span<const uint8_t> p, int w, int h) { return EncodePng(p, w, h); },
        +[](std::span<const uint8_t> p, int w, int h) { return EncodeJpeg(p, w, h); }}) {
    EXPECT_THAT(std::string(encode(pixels, 2, 3).status().message()),
                HasSubstr("is 2x3 and has 12 bytes; must have 18"));
    EXPECT_THAT(std::string(encode(pixels, 0, 2).status().message()),
                HasSubstr("is 0x2; sides must be from 1 to 65500"));
    EXPECT_EQ(encode(pixels, 70000, 1).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(EncodeJpeg(pixels, 2, 2, 0).status().message()),
              HasSubstr("quality is 0; must be from 1 to 100"));
  EXPECT_FALSE(EncodeJpeg(pixels, 2, 2, 101).ok());
}

}  // namespace
}  // namespace wan
