#include "engine/ops/sinusoidal_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>

namespace wan {

at::Tensor SinusoidalEmbedding(const at::Tensor& timesteps, int64_t dim) {
  const int64_t half = dim / 2;
  const auto options = at::TensorOptions().dtype(at::kDouble).device(timesteps.device());
  const at::Tensor angle =
      at::outer(timesteps, at::pow(10000.0, at::arange(half, options) / -half));
  return at::cat({angle.cos(), angle.sin()}, 1).to(at::kFloat);
}

}  // namespace wan
