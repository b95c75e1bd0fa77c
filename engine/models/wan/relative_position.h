// The buckets of T5's relative position bias.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// int64 [length, length] on the CPU: for query i and key j the bucket of the distance j - i, below
// num_buckets (a multiple of 4). The upper half of the buckets is for keys after the query. Within
// a half, its first half stands for the distances 0, 1, 2, ... themselves, the rest for ever wider
// ranges of them up to 128, and the last one for all beyond.
at::Tensor RelativePositionBuckets(int64_t length, int64_t num_buckets);

}  // namespace wan
