// Turns the latents of a request into tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "engine/api/generation.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Returns the values in fp32 on `device`. `stored` comes from FindLatents.
at::Tensor ToLatents(const StoredTensor& stored, const c10::Device& device);

// Returns clean latents with noise of the level `sigma`: (1 - sigma) * clean + sigma * noise. All
// tensors are fp32 and of one shape. At level 1 the result equals the noise.
at::Tensor MixNoise(const at::Tensor& clean, const at::Tensor& noise, float sigma);

}  // namespace wan
