// Allocates host memory for weights that are parked, or on their way to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns how many threads read files into host memory, or touch its pages, in parallel: one per
// CPU but at most 16, which use the full bandwidth of the memory.
int HostCopyThreads();

// Returns an uninitialised kByte tensor of shape [bytes] on the CPU. For a CUDA device the memory
// is pinned, so that copies run at the link's full rate while the device computes. The memory uses
// large pages if the kernel offers them. Throws c10::OutOfMemoryError if the machine does not give
// the memory. Thread-safe.
at::Tensor AllocateHostMemory(int64_t bytes, at::Device device);

}  // namespace wan
