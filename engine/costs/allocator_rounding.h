// The rounding of LibTorch's caching allocator of a GPU: the device memory that a tensor takes.
#pragma once

#include <cstdint>

namespace wan {

// Blocks are multiples of 512 bytes, and a large one is handed out whole where less than the
// smallest split would be left over of the 2 MiB that memory comes in.
constexpr int64_t AllocatedBytes(int64_t bytes) {
  constexpr int64_t kGrain = 512;
  constexpr int64_t kLarge = int64_t{10} << 20;
  constexpr int64_t kLargeGrain = int64_t{2} << 20;
  const int64_t grain = bytes >= kLarge ? kLargeGrain : kGrain;
  return (bytes + grain - 1) / grain * grain;
}

}  // namespace wan
