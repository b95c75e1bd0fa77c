// The reference tensors of tests/golden for tests that compare with them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace wan {

// tests/golden, and where its checkpoints are unpacked: as the build has them or, for a program
// that was carried to another machine, from the environment variables WAN_GOLDEN_DIR and
// WAN_CHECKPOINT_DIR.
std::string GoldenDir();
std::string CheckpointDir();

// The tensor `name` of the safetensors file tests/golden/`file`, for example
// ("vae/2.2_encode_1.safetensors", "latents"), on the CPU in its own dtype. Throws
// std::runtime_error, which fails the test, if there is no such file or tensor.
at::Tensor LoadGolden(std::string_view file, std::string_view name);

// |actual - expected| / |expected| in the Frobenius norm, computed in float64; infinity where the
// shapes differ or a value is not finite, so that no comparison with it passes.
double RelativeError(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace wan
