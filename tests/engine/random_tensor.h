// Seeded random tensors, the same on every machine.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Normal numbers with this mean and deviation, on the CPU.
at::Tensor RandomTensor(at::IntArrayRef shape, uint64_t seed, at::ScalarType dtype = at::kFloat,
                        double mean = 0, double deviation = 1);

// int32 in [0, bound), on the CPU.
at::Tensor RandomIndex(int64_t size, int64_t bound, uint64_t seed);

}  // namespace wan
