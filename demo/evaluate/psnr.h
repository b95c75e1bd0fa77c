// Says how near pixels are to the ones they should be.
#pragma once

namespace wan::demo {

struct Decibels {
  int clips = 0;
  double sum = 0;
  double worst = 0;

  void Add(double psnr);
  double mean() const { return clips == 0 ? 0 : sum / clips; }
};

}  // namespace wan::demo
