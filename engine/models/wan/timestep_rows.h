// Finds the distinct timesteps of a forward. In a step of text-to-video all tokens share one
// timestep; if the first frame is given, its tokens have a different one. Knowing the distinct
// ones, the transformer computes modulation once per timestep instead of once per token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

struct TimestepRows {
  std::vector<double> timesteps;  // distinct timesteps, ordered by the first token that has them
  // [batch * tokens]: the index of each token's timestep; empty if there is only one timestep.
  std::vector<int32_t> index;
};

// `timestep` must be [batch] or [batch, tokens] on the CPU, floating point or int64.
// INVALID_ARGUMENT otherwise, or if a value is not finite.
absl::StatusOr<TimestepRows> FindTimestepRows(const at::Tensor& timestep, int64_t batch,
                                              int64_t tokens);

}  // namespace wan
