#include "benchmarks/test_pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace wan {
namespace {

constexpr int kWidth = 64;
constexpr int kHeight = 48;

std::vector<uint8_t> Drawn(PictureKind kind, int time) {
  std::vector<uint8_t> frame(3 * kWidth * kHeight);
  DrawPicture(kind, kWidth, kHeight, time, frame);
  return frame;
}

TEST(TestPicturesTest, TheSamePictureIsDrawnTwice) {
  for (const PictureKind kind : {PictureKind::kClean, PictureKind::kGrain, PictureKind::kNoise}) {
    EXPECT_EQ(Drawn(kind, 3), Drawn(kind, 3));
    EXPECT_NE(Drawn(kind, 3), Drawn(kind, 4));
  }
}

TEST(TestPicturesTest, GrainAddsAtMostSevenLevels) {
  const auto clean = Drawn(PictureKind::kClean, 0);
  const auto grain = Drawn(PictureKind::kGrain, 0);
  for (size_t i = 0; i < clean.size(); ++i) {
    ASSERT_GE(grain[i], clean[i]);
    ASSERT_LE(grain[i], clean[i] + 7);
  }
}

TEST(TestPicturesTest, LikenessIsThatOfTheLuma) {
  const auto frame = Drawn(PictureKind::kClean, 0);
  const Likeness same = Compare(frame, frame, kWidth, kHeight);
  EXPECT_EQ(same.squared_error, 0);
  EXPECT_NEAR(same.ssim, 1, 1e-12);
  EXPECT_TRUE(std::isinf(Psnr(same.squared_error)));

  std::vector<uint8_t> brighter = frame;
  for (uint8_t& value : brighter) value += 2;
  EXPECT_NEAR(Compare(frame, brighter, kWidth, kHeight).squared_error, 4, 1e-3);
  EXPECT_NEAR(Psnr(4), 42.1102, 1e-3);

  std::vector<uint8_t> green = frame;
  for (size_t i = 1; i < green.size(); i += 3) green[i] += 10;
  EXPECT_NEAR(Compare(frame, green, kWidth, kHeight).squared_error, 7.152 * 7.152, 1e-2);
  EXPECT_LT(Compare(frame, Drawn(PictureKind::kNoise, 0), kWidth, kHeight).ssim, 0.2);
}

TEST(TestPicturesTest, OnlyThreeNamesAreKinds) {
  EXPECT_EQ(ParsePictureKind("grain"), PictureKind::kGrain);
  EXPECT_EQ(ParsePictureKind("grainy"), std::nullopt);
}

}  // namespace
}  // namespace wan
