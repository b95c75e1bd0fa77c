// Host memory that weights wait in, or pass through, on their way to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// How many threads read files into host memory, or have the kernel hand it out, at once: one for
// each CPU, at most 16, which is more than memory keeps busy.
int HostCopyThreads();

// kByte [bytes] on the CPU, not initialised. For a CUDA device it is page-locked, so that copies
// run at the full rate of the link and beside the computing; its pages are large where the kernel
// gives them. Throws c10::OutOfMemoryError if the machine does not give it.
at::Tensor AllocateHostMemory(int64_t bytes, at::Device device);

}  // namespace wan
