#include "demo/evaluate/psnr.h"

#include <algorithm>

namespace wan::demo {

void Decibels::Add(double psnr) {
  worst = clips == 0 ? psnr : std::min(worst, psnr);
  sum += psnr;
  ++clips;
}

}  // namespace wan::demo
