// Allocates host memory for weights that wait there, or pass through it, on their way to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns the number of threads that read files into host memory, or touch its pages, at once: one
// for each CPU, but at most 16, which is enough to saturate the memory.
int HostCopyThreads();

// Returns an uninitialised kByte [bytes] on the CPU. For a CUDA device it is page-locked, so that
// copies run at the full rate of the link while the device computes, and its pages are large where
// the kernel has such. Throws c10::OutOfMemoryError if the machine refuses the memory. Thread-safe.
at::Tensor AllocateHostMemory(int64_t bytes, at::Device device);

}  // namespace wan
