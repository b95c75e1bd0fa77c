#include "benchmarks/test_pictures.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wan {
namespace {

std::vector<float> Luma(std::span<const uint8_t> rgb24) {
  std::vector<float> luma(rgb24.size() / 3);
  for (size_t i = 0; i < luma.size(); ++i) {
    luma[i] = 0.2126f * static_cast<float>(rgb24[3 * i]) +
              0.7152f * static_cast<float>(rgb24[3 * i + 1]) +
              0.0722f * static_cast<float>(rgb24[3 * i + 2]);
  }
  return luma;
}

double WindowSsim(const std::vector<float>& a, const std::vector<float>& b, size_t corner,
                  int width) {
  constexpr int kSide = 8;
  constexpr double kCount = kSide * kSide;
  constexpr double kSmall1 = 0.01 * 0.01 * 255 * 255;
  constexpr double kSmall2 = 0.03 * 0.03 * 255 * 255;
  double sum_a = 0, sum_b = 0, square_a = 0, square_b = 0, both = 0;
  for (int y = 0; y < kSide; ++y) {
    const size_t row = corner + static_cast<size_t>(y) * static_cast<size_t>(width);
    for (size_t i = row; i < row + kSide; ++i) {
      sum_a += a[i];
      sum_b += b[i];
      square_a += static_cast<double>(a[i]) * a[i];
      square_b += static_cast<double>(b[i]) * b[i];
      both += static_cast<double>(a[i]) * b[i];
    }
  }
  const double mean_a = sum_a / kCount;
  const double mean_b = sum_b / kCount;
  const double variances = (square_a + square_b) / kCount - mean_a * mean_a - mean_b * mean_b;
  const double covariance = both / kCount - mean_a * mean_b;
  return (2 * mean_a * mean_b + kSmall1) * (2 * covariance + kSmall2) /
         ((mean_a * mean_a + mean_b * mean_b + kSmall1) * (variances + kSmall2));
}

}  // namespace

std::optional<PictureKind> ParsePictureKind(std::string_view name) {
  if (name == "clean") return PictureKind::kClean;
  if (name == "grain") return PictureKind::kGrain;
  if (name == "noise") return PictureKind::kNoise;
  return std::nullopt;
}

void DrawPicture(PictureKind kind, int width, int height, int time, std::span<uint8_t> rgb24) {
  uint32_t random = 12345u + 2654435761u * static_cast<uint32_t>(time + 1);
  size_t at = 0;
  const auto draw = [&] { return random = random * 1664525u + 1013904223u; };
  for (int y = 0; y < height; ++y) {
    const double column_wave = std::cos(0.015 * (y - 2 * time));
    for (int x = 0; x < width; ++x) {
      if (kind == PictureKind::kNoise) {
        for (int c = 0; c < 3; ++c) rgb24[at++] = static_cast<uint8_t>(draw() >> 24);
        continue;
      }
      const double wave = std::sin(0.02 * (x + 3 * time)) * column_wave;
      const int edge = ((x + 5 * time) / 97 + y / 61) % 2 * 40;
      const int grain = kind == PictureKind::kGrain ? static_cast<int>(draw() >> 29) : 0;
      const int value = static_cast<int>(110 + 60 * wave) + edge + grain;
      for (int c = 0; c < 3; ++c) {
        rgb24[at++] = static_cast<uint8_t>(std::clamp(value + 10 * c, 0, 255));
      }
    }
  }
}

Likeness Compare(std::span<const uint8_t> a, std::span<const uint8_t> b, int width, int height) {
  const std::vector<float> luma_a = Luma(a);
  const std::vector<float> luma_b = Luma(b);
  Likeness likeness;
  for (size_t i = 0; i < luma_a.size(); ++i) {
    const double difference = luma_a[i] - luma_b[i];
    likeness.squared_error += difference * difference;
  }
  likeness.squared_error /= static_cast<double>(luma_a.size());
  int windows = 0;
  for (int y = 0; y + 8 <= height; y += 4) {
    for (int x = 0; x + 8 <= width; x += 4, ++windows) {
      const size_t corner =
          static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
      likeness.ssim += WindowSsim(luma_a, luma_b, corner, width);
    }
  }
  if (windows > 0) likeness.ssim /= windows;
  return likeness;
}

double Psnr(double mean_squared_error) {
  if (mean_squared_error <= 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(255.0 * 255.0 / mean_squared_error);
}

}  // namespace wan
