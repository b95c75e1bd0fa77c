// The golden cases of all solvers: tests/golden/samplers.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "tests/engine/raw_tensors.h"

namespace wan {

inline const std::map<std::string, RawTensor>& GoldenSamplers() {
  static const auto* tensors = new std::map<std::string, RawTensor>(
      ReadRawTensors(std::string(WAN_GOLDEN_DIR) + "/samplers/samplers.safetensors"));
  return *tensors;
}

struct GoldenSampler {
  std::string solver;
  int steps;
  double shift;

  // Of the names of its tensors.
  std::string Prefix() const {
    return solver + "/" + std::to_string(steps) + "_" + std::to_string(static_cast<int>(shift)) +
           "/";
  }
};

inline void PrintTo(const GoldenSampler& sampler, std::ostream* out) { *out << sampler.Prefix(); }

inline auto EveryGoldenSampler() {
  using Case = GoldenSampler;
  return testing::Values(Case{"unipc", 1, 5}, Case{"unipc", 2, 3}, Case{"unipc", 4, 5},
                         Case{"unipc", 10, 5}, Case{"unipc", 40, 12}, Case{"unipc", 50, 5},
                         Case{"dpm++", 1, 5}, Case{"dpm++", 2, 3}, Case{"dpm++", 4, 5},
                         Case{"dpm++", 10, 5}, Case{"dpm++", 40, 12}, Case{"dpm++", 50, 5},
                         Case{"euler", 4, 5}, Case{"euler", 2, 8});
}

}  // namespace wan
