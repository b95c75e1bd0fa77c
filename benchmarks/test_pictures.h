// Makes moving pictures for measuring a video encoder, and computes PSNR and SSIM of the decoded
// frames.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wan {

enum class PictureKind {
  kClean,  // moving edges and gradients
  kGrain,  // as kClean, plus noise of eight levels in every pixel
  kNoise,  // random bytes, like the video of a model with random weights
};

// Parses the name of a content: "clean", "grain" or "noise".
std::optional<PictureKind> ParsePictureKind(std::string_view name);

// Fills `rgb24` (3 * width * height bytes) with the picture of frame `time`. The same arguments
// always give the same bytes.
void DrawPicture(PictureKind kind, int width, int height, int time, std::span<uint8_t> rgb24);

// How two RGB frames of the same size differ in luma (BT.709, 0 to 255).
struct Likeness {
  double squared_error = 0;  // mean squared error over all pixels
  double ssim = 0;           // mean SSIM over windows of 8 x 8 pixels, one every 4 pixels
};
Likeness Compare(std::span<const uint8_t> a, std::span<const uint8_t> b, int width, int height);

// Returns the PSNR in dB; infinite if the error is 0.
double Psnr(double mean_squared_error);

}  // namespace wan
