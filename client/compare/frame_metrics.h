// Measures how near one frame is to another: PSNR, SSIM and MS-SSIM. All functions are pure and may
// be called from any thread; equal inputs give equal digits.
#pragma once

#include <cstdint>
#include <span>

namespace wan::client {

// The PSNR given for equal pixels, which is also the upper limit: infinity would have no mean.
inline constexpr double kEqualPsnr = 100;

// The side of SSIM's window in pixels. Frames with a shorter side have no SSIM.
inline constexpr int kSsimWindow = 11;
// The number of scales of MS-SSIM, and the shortest side for which all of them exist: halved four
// times (rounded up) it still holds a window.
inline constexpr int kMsSsimScales = 5;
inline constexpr int kMsSsimSide = 161;

struct FrameMetrics {
  // PSNR in dB over all values of R, G and B; at most kEqualPsnr.
  double psnr = 0;
  // SSIM of luma; 1 for equal frames, below 0 for opposite ones.
  double ssim = 0;
  // MS-SSIM of luma, from 0 to 1.
  double ms_ssim = 0;
  // Whether the pixels are equal.
  bool identical = false;
};

// Returns the peak signal-to-noise ratio of 8-bit values in dB. Returns the PSNR of two frames,
// which must have the same number of values, above 0.
double Psnr(std::span<const uint8_t> a, std::span<const uint8_t> b);

// Returns how many scales MS-SSIM has for frames of this size, at most kMsSsimScales; 0 if a side
// is below kSsimWindow.
int MsSsimScales(int width, int height);

// Compares two frames of this size (rows from the top, each of width * 3 bytes R, G, B), whose
// sides must be kSsimWindow or more.
//
//   luma     0.2126 R + 0.7152 G + 0.0722 B (BT.709), not rounded
//   SSIM     Wang et al. 2004: Gaussian window of 11x11, sigma 1.5, K1 0.01, K2 0.03, population
//            variances, the mean over all windows that lie within the frame
//   MS-SSIM  Wang et al. 2003: at each scale the mean of contrast and structure, at the last one
//   the
//            mean SSIM, each to the power of its weight; between scales 2x2 pixels are averaged,
//            the last row and column of odd sides count twice. With fewer than five scales the
//            weights are divided by their sum. Negative means count as 0.
FrameMetrics MeasureFrame(std::span<const uint8_t> a, std::span<const uint8_t> b, int width,
                          int height);

}  // namespace wan::client
