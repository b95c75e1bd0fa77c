#include "client/compare/frame_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/client/compare/test_video.h"

namespace wan::client {
namespace {

using fakes::TestFrame;
using Rgb = std::vector<uint8_t>;

Rgb Flat(int width, int height, uint8_t value) {
  return Rgb(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, value);
}

TEST(FrameMetricsTest, EqualFramesHaveTheBestFigures) {
  const Rgb frame = TestFrame(64, 48, 0, 9);
  const FrameMetrics metrics = MeasureFrame(frame, frame, 64, 48);
  EXPECT_EQ(metrics.psnr, 100);
  EXPECT_EQ(metrics.ssim, 1);
  EXPECT_EQ(metrics.ms_ssim, 1);
  EXPECT_TRUE(metrics.identical);
}

// One value of a large frame that is off by one would have more dB than equal frames.
TEST(FrameMetricsTest, NoPsnrIsAboveThatOfEqualPixels) {
  const Rgb a(30'000'000, 7);
  Rgb b = a;
  b[5] = 8;
  EXPECT_EQ(Psnr(a, b), 100);
  b.assign(b.size(), 8);
  EXPECT_NEAR(Psnr(a, b), 20 * std::log10(255.0), 1e-12);
}

// Flat pictures have no contrast and no structure, so SSIM is the luminance's term alone.
TEST(FrameMetricsTest, FlatFramesFollowTheClosedForms) {
  const double a = 100, b = 130, c1 = 6.5025;
  const double luminance = (2 * a * b + c1) / (a * a + b * b + c1);
  const FrameMetrics metrics = MeasureFrame(Flat(176, 176, 100), Flat(176, 176, 130), 176, 176);
  EXPECT_NEAR(metrics.psnr, 20 * std::log10(255.0 / 30), 1e-12);
  EXPECT_NEAR(metrics.ssim, luminance, 1e-9);
  EXPECT_NEAR(metrics.ms_ssim, std::pow(luminance, 0.1333), 1e-9) << "the last scale's weight";
  EXPECT_FALSE(metrics.identical);
}

// A window that spans the whole frame, by the formula: a checkerboard and its negative.
TEST(FrameMetricsTest, OppositeStructureIsNegative) {
  Rgb a, b;
  for (int i = 0; i < 11 * 11; ++i) {
    a.insert(a.end(), 3, i % 2 == 0 ? 250 : 5);
    b.insert(b.end(), 3, i % 2 == 0 ? 5 : 250);
  }
  const FrameMetrics metrics = MeasureFrame(a, b, 11, 11);
  EXPECT_LT(metrics.ssim, -0.99);
  EXPECT_EQ(metrics.ms_ssim, 0) << "a negative mean has no power";
}

// PSNR and SSIM: peak_signal_noise_ratio and structural_similarity (gaussian_weights=True,
// sigma=1.5, use_sample_covariance=False, data_range=255) of scikit-image 0.26.0, SSIM over the
// luma of frame_metrics.h. MS-SSIM: the same maps by correlate1d of scipy 1.17.1 in numpy 2.4.6.
TEST(FrameMetricsTest, AgreesWithScikitImage) {
  const struct {
    int width, height, grain_a, t_b, grain_b;
    double psnr, ssim;
    int scales;
    double ms_ssim;
  } table[] = {
      {176, 176, 0, 0, 20, 26.722115974294, 0.838632712649, 5, 0.987129381564},
      {177, 163, 8, 3, 8, 19.361789870920, 0.769919347974, 5, 0.950657864181},
      {64, 32, 0, 0, 40, 21.008341400963, 0.579486842369, 2, 0.893825250561},
      {48, 11, 0, 1, 5, 36.493739892948, 0.970615720935, 1, 0.970615720935},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(testing::Message() << row.width << "x" << row.height);
    const FrameMetrics metrics =
        MeasureFrame(TestFrame(row.width, row.height, 0, row.grain_a),
                     TestFrame(row.width, row.height, row.t_b, row.grain_b), row.width, row.height);
    EXPECT_NEAR(metrics.psnr, row.psnr, 1e-10);
    EXPECT_NEAR(metrics.ssim, row.ssim, 1e-10);
    EXPECT_NEAR(metrics.ms_ssim, row.ms_ssim, 1e-10);
    EXPECT_EQ(MsSsimScales(row.width, row.height), row.scales);
  }
}

TEST(FrameMetricsTest, SmallFramesHaveFewerScales) {
  EXPECT_EQ(MsSsimScales(1280, 704), 5);
  EXPECT_EQ(MsSsimScales(kMsSsimSide, kMsSsimSide), 5);
  EXPECT_EQ(MsSsimScales(4000, kMsSsimSide - 1), 4);
  EXPECT_EQ(MsSsimScales(11, 11), 1);
  EXPECT_EQ(MsSsimScales(1280, 10), 0);
}

}  // namespace
}  // namespace wan::client
