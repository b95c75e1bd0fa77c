// C entry points of libwan_cuda.so (engine/ops/cuda_plugin.cc, engine/models/pinned_memory.cc and
// engine/runtime/cuda_plugin.cc call them).
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/vae_cuda_ops.h"

extern "C" {

// Writes the tables that the kernels entered themselves into when the library was loaded.
void wan_cuda_copy_kernels(wan::CudaOps* ops, wan::VaeCudaOps* vae_ops) {
  *ops = wan::GetCudaOps();
  *vae_ops = wan::GetVaeCudaOps();
}

// GPUs that the driver offers; 0 without a driver.
int wan_cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

// Writes the PCI bus id of a GPU; 0 on success.
int wan_cuda_pci_bus_id(int device, char* out, int size) {
  return cudaDeviceGetPCIBusId(out, size, device) == cudaSuccess ? 0 : -1;
}

// Locks pages of host memory for copies of every GPU, and unlocks them; 0 on success.
int wan_cuda_lock_host(void* memory, size_t bytes) {
  const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  // The error is the caller's; it must not be found by whoever asks for the last one later.
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess ? 0 : -1;
}
int wan_cuda_unlock_host(void* memory) {
  return cudaHostUnregister(memory) == cudaSuccess ? 0 : -1;
}

// Before anything is allocated. Segments that grow and give single pages back: what a job needs is
// then what it holds, and no memory is lost between blocks of one stage that the next cannot use.
// Who set the allocator up by LibTorch's variables of the environment is not overruled.
void wan_cuda_prepare_allocator() {
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr ||
      std::getenv("PYTORCH_ALLOC_CONF") != nullptr) {
    return;
  }
  c10::CachingAllocator::setAllocatorSettings("expandable_segments:True");
}

// The caching allocator refuses what is beyond `bytes` on the current GPU, as a smaller card would;
// 0 on success.
int wan_cuda_limit_memory(int device, size_t bytes) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return -1;
  const double fraction =
      static_cast<double>(bytes) / static_cast<double>(properties.totalGlobalMem);
  if (fraction > 1) return -1;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction,
                                                     static_cast<c10::DeviceIndex>(device));
  return 0;
}

}  // extern "C"
