// Computes the buckets of T5's relative position bias.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns int64 [length, length] on the CPU: for query i and key j the bucket of the distance j -
// i, from 0 to num_buckets - 1. num_buckets must be a multiple of 4. The upper half of the buckets
// is for keys after the query. In each half, the first half of the buckets stands for one distance
// per bucket (0, 1, 2, ...). The other buckets stand for growing ranges up to 128. The last bucket
// stands for all larger distances.
at::Tensor RelativePositionBuckets(int64_t length, int64_t num_buckets);

}  // namespace wan
