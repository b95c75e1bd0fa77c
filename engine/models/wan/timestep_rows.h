// Which timesteps a forward has. All tokens of a text-to-video step share one, and the tokens of a
// given first frame have another: the modulation is computed for these, not for every token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

struct TimestepRows {
  std::vector<double> timesteps;  // distinct, in the order of their first token
  // [batch * tokens], which of them a token has; empty if there is one.
  std::vector<int32_t> index;
};

// `timestep` is [batch] or [batch, tokens] on the CPU, floating point or int64; INVALID_ARGUMENT if
// it is not, or a value is not finite.
absl::StatusOr<TimestepRows> FindTimestepRows(const at::Tensor& timestep, int64_t batch,
                                              int64_t tokens);

}  // namespace wan
