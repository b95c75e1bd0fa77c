#include "engine/models/wan/relative_position.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace wan {
namespace {

constexpr double kFarthest = 128;

}  // namespace

at::Tensor RelativePositionBuckets(int64_t length, int64_t num_buckets) {
  const int64_t half = num_buckets / 2;
  const int64_t exact = half / 2;
  // Returns the bucket of each distance, so that the result can be looked up for every pair of
  // tokens.
  const at::Tensor distance = at::arange(length, at::kLong);
  // Logarithms are computed in fp32, as in training, because exact integers (at 16, 32 and 64) must
  // round to the same side.
  const at::Tensor fraction = (distance.to(at::kFloat) / exact).log() / std::log(kFarthest / exact);
  const at::Tensor wide = (exact + (fraction * (half - exact)).to(at::kLong)).clamp_max(half - 1);
  const at::Tensor bucket = at::where(distance < exact, distance, wide);

  const at::Tensor offset = distance.unsqueeze(0) - distance.unsqueeze(1);
  return bucket.index_select(0, offset.abs().flatten()).view_as(offset) + (offset > 0) * half;
}

}  // namespace wan
