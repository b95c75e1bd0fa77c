// Computes the sinusoids of timesteps, the input of the time embedding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Turns timesteps [n] in float64 into [n, dim] in fp32, dim even: dim / 2 cosines, then as many
// sines, of t / 10000^(2i / dim). Angles are computed in float64, because rounding them in fp32
// would be the largest error of a forward pass.
at::Tensor SinusoidalEmbedding(const at::Tensor& timesteps, int64_t dim);

}  // namespace wan
