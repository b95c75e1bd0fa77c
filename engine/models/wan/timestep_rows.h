// Finds the distinct timesteps of a forward. All tokens of a text-to-video step share one, and the
// tokens of a given first frame have another. The modulation is computed once for each, not for
// every token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

struct TimestepRows {
  std::vector<double> timesteps;  // the distinct ones, in the order of their first token
  // [batch * tokens]: the index of each token's timestep; empty if there is only one timestep.
  std::vector<int32_t> index;
};

// `timestep` must be [batch] or [batch, tokens] on the CPU, floating point or int64.
// INVALID_ARGUMENT if it is not, or if a value is not finite.
absl::StatusOr<TimestepRows> FindTimestepRows(const at::Tensor& timestep, int64_t batch,
                                              int64_t tokens);

}  // namespace wan
