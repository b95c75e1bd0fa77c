// C entry points of libwan_cuda.so (engine/runtime/cuda_plugin.cc calls them).
#include <cuda_runtime_api.h>

extern "C" {

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
