// How LibTorch's caching GPU allocator rounds a tensor's size.
#pragma once

#include <cstdint>

namespace wan {

// Allocated blocks are multiples of 512 bytes. From 10 MiB on they are multiples of 2 MiB, because
// the allocator does not split off a smaller remainder.
constexpr int64_t AllocatedBytes(int64_t bytes) {
  constexpr int64_t kGrain = 512;
  constexpr int64_t kLarge = int64_t{10} << 20;
  constexpr int64_t kLargeGrain = int64_t{2} << 20;
  const int64_t grain = bytes >= kLarge ? kLargeGrain : kGrain;
  return (bytes + grain - 1) / grain * grain;
}

}  // namespace wan
