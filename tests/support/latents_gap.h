// How much the latents of two jobs differ.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace wan::support {

// Bounds of RelativeGap for jobs in fp32 that differ by rounding alone. How much that is depends on
// the processor, whose units order their sums in their own ways: up to 7.1e-7 and, with a guidance
// of 5, 6.6e-6 were seen, and the bounds are about three times and twice that. A guidance of 5
// enlarges what two forwards differ by, each for itself, by sqrt(5^2 + 4^2).
inline constexpr double kRoundingGap = 2e-6;
inline constexpr double kGuidedRoundingGap = 6.4 * kRoundingGap;

// Returns the numbers of a latents file: fp32 behind a header of JSON whose length comes first.
inline std::vector<float> LatentsIn(const std::string& file) {
  uint64_t header = 0;
  if (file.size() < sizeof(header)) return {};
  std::memcpy(&header, file.data(), sizeof(header));
  if (header > file.size() - sizeof(header)) return {};
  const size_t begin = sizeof(header) + header;
  std::vector<float> values((file.size() - begin) / sizeof(float));
  std::memcpy(values.data(), file.data() + begin, values.size() * sizeof(float));
  return values;
}

// Returns |actual - expected| / |expected| of two latents files; infinity if their sizes differ or
// they are empty.
inline double RelativeGap(const std::string& actual, const std::string& expected) {
  const std::vector<float> a = LatentsIn(actual);
  const std::vector<float> b = LatentsIn(expected);
  if (a.size() != b.size() || b.empty()) return INFINITY;
  double gap = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    gap += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(gap / norm);
}

}  // namespace wan::support
