// How near pixels are to those they should be.
#pragma once

#include <cstdint>
#include <span>

namespace wan::demo {

// Peak signal-to-noise ratio of 8-bit values, in dB; 100 for equal ones. Both have the same number
// of values, above 0.
double Psnr(std::span<const uint8_t> a, std::span<const uint8_t> b);

// Of several clips.
struct Decibels {
  int clips = 0;
  double sum = 0;
  double worst = 0;

  void Add(double psnr);
  double mean() const { return clips == 0 ? 0 : sum / clips; }
};

}  // namespace wan::demo
