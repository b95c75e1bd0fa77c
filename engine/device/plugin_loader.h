// Loads libwan_cuda.so (our kernels and LibTorch's CUDA half) when a GPU is first needed. So
// programs start quickly, even on machines without a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/plugin_abi.h"

namespace wan {

// Loads the plug-in, registers its kernels with the operators, and sets up LibTorch's allocator.
// Later calls return the result of the first call, which stays valid until the process ends. The
// loader looks for the library in ../lib and lib beside the running program, then on the dynamic
// loader's path. UNAVAILABLE says what is missing. Thread-safe, but call LoadCudaPlugin before the
// first operator on a CUDA device, because the operators' tables have no lock.
absl::StatusOr<const CudaPlugin*> LoadCudaPlugin();

// Returns the table that LoadCudaPlugin loaded; null before that call, and if it failed. The call
// never loads anything.
const CudaPlugin* LoadedCudaPlugin();

// Returns the path of the plug-in that was loaded; empty before LoadCudaPlugin.
std::string CudaPluginPath();

// Returns the number of GPUs that the driver offers; 0 if the plug-in cannot be loaded.
int CudaDeviceCount();

// Returns a GPU's PCI bus id ("0000:1b:00.0"), by which NVML finds it. UNAVAILABLE if the driver
// does not know the GPU.
absl::StatusOr<std::string> CudaPciBusId(int device);

// Returns FAILED_PRECONDITION, naming the card, if the plug-in's kernels were not compiled for this
// GPU. Call CheckGpuIsCompiledFor before the GPU's first operator.
absl::Status CheckGpuIsCompiledFor(int device);

// Limits LibTorch's allocator on a GPU to `bytes`. INVALID_ARGUMENT if the card has less memory.
absl::Status LimitCudaMemory(int device, uint64_t bytes);

}  // namespace wan
