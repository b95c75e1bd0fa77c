// The reference tensors of tests/golden for tests that compare with them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace wan {

// The tensor `name` of the safetensors file tests/golden/`file`, for example
// ("vae/2.2_encode_1.safetensors", "latents"), on the CPU in its own dtype. Throws
// std::runtime_error, which fails the test, if there is no such file or tensor.
at::Tensor LoadGolden(std::string_view file, std::string_view name);

// |actual - expected| / |expected| in the Frobenius norm, computed in float64; infinity where the
// shapes differ or a value is not finite, so that no comparison with it passes.
double RelativeError(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace wan
