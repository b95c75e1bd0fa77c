// libwan_cuda.so: our kernels and LibTorch's CUDA half. Loaded only when a GPU is asked for, so
// that the server starts fast and everywhere without one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

// Loads the plug-in once; later calls return the first result. Looked for in ../lib and lib beside
// the running program, then in the loader's own path. UNAVAILABLE says what is missing.
absl::Status LoadCudaPlugin();

// GPUs that the driver offers; the plug-in must be loaded.
int CudaDeviceCount();

// PCI bus id of a GPU ("0000:1b:00.0"), by which NVML knows it; the plug-in must be loaded.
absl::StatusOr<std::string> CudaPciBusId(int device);

// Holds the caching allocator of a GPU to `bytes`, at most the card's; the plug-in must be loaded.
absl::Status LimitCudaMemory(int device, uint64_t bytes);

}  // namespace wan
