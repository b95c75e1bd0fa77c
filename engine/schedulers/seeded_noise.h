// The noise that belongs to a seed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns noise in fp32: what upstream's generator, torch.Generator(device).manual_seed(seed),
// draws after `earlier` draws of the same shape. Makes the earlier draws again, which costs little
// beside a forward. Throws c10::Error as LibTorch's operators do. Any thread may call it.
at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device, int earlier = 0);

}  // namespace wan
