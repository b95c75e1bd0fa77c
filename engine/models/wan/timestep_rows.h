// Finds the distinct timesteps of a forward. In a step of text-to-video all tokens share one
// timestep. If the first frame is given, its tokens have a different timestep. The transformer
// computes modulation once per distinct timestep instead of once per token.
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

// Returns the distinct timesteps of `timestep`, which must be [batch] or [batch, tokens] on the
// CPU, floating point or int64. INVALID_ARGUMENT for any other tensor, or if a value is not finite.
absl::StatusOr<TimestepRows> FindTimestepRows(const at::Tensor& timestep, int64_t batch,
                                              int64_t tokens);

}  // namespace wan
