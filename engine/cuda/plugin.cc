// C entry points of libwan_cuda.so (engine/ops/cuda_plugin.cc and engine/runtime/cuda_plugin.cc
// call them).
#include <cuda_runtime_api.h>

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

}  // extern "C"
