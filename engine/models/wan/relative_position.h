// Computes the buckets of T5's relative position bias.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns int64 [length, length] on the CPU: for query i and key j the bucket of the distance j -
// i, below num_buckets, which must be a multiple of 4. The upper half of the buckets is for keys
// after the query. Within each half, the first half of the buckets stands for single distances 0,
// 1, 2, ..., the others for ever wider ranges up to 128, and the last one for all distances beyond.
at::Tensor RelativePositionBuckets(int64_t length, int64_t num_buckets);

}  // namespace wan
