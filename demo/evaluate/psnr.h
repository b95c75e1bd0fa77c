// Says how near pixels are to the ones they should be.
#pragma once

#include <cstdint>
#include <span>

namespace wan::demo {

// Returns the peak signal-to-noise ratio of 8-bit values in dB; 100 if they are equal. Both must
// have the same number of values, at least one.
double Psnr(std::span<const uint8_t> a, std::span<const uint8_t> b);

// The levels of several clips, in dB.
struct Decibels {
  int clips = 0;
  double sum = 0;
  double worst = 0;

  void Add(double psnr);
  double mean() const { return clips == 0 ? 0 : sum / clips; }
};

}  // namespace wan::demo
