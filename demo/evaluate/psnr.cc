#include "demo/evaluate/psnr.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace wan::demo {
namespace {

constexpr double kEqual = 100;

}  // namespace

double Psnr(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  int64_t squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int difference = a[i] - b[i];
    squares += difference * difference;
  }
  if (squares == 0) return kEqual;
  return 10 * std::log10(255.0 * 255.0 * double(a.size()) / double(squares));
}

void Decibels::Add(double psnr) {
  worst = clips == 0 ? psnr : std::min(worst, psnr);
  sum += psnr;
  ++clips;
}

}  // namespace wan::demo
