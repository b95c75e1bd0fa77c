// Loads libwan_cuda.so, our kernels and LibTorch's CUDA half, when a GPU is asked for, so that one
// program starts quickly and also on machines without a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/plugin_abi.h"

namespace wan {

// Loads the plug-in once, enters its kernels into the operators' tables and sets up LibTorch's
// allocator; later calls return the first result, which stays valid for the process. The library is
// looked for in ../lib and lib beside the running program, then on the loader's own path.
// UNAVAILABLE says what is missing.
//
// Call it before the first operator on a CUDA device: the operators' tables are not guarded.
absl::StatusOr<const CudaPlugin*> LoadCudaPlugin();

// The table if LoadCudaPlugin has loaded it; null before that, and on machines without it. Never
// loads anything.
const CudaPlugin* LoadedCudaPlugin();

// The file that LoadCudaPlugin has loaded; empty before that.
std::string CudaPluginPath();

// GPUs that the driver offers; 0 where the plug-in cannot be loaded.
int CudaDeviceCount();

// The PCI bus id of a GPU ("0000:1b:00.0"), by which NVML knows it. UNAVAILABLE if the driver does
// not tell.
absl::StatusOr<std::string> CudaPciBusId(int device);

// Holds the caching allocator of a GPU to `bytes`, at most the card's. INVALID_ARGUMENT for more.
absl::Status LimitCudaMemory(int device, uint64_t bytes);

}  // namespace wan
