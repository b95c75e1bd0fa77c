// Implements plugin_abi.h; compiled into libwan_cuda.so.
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "engine/device/cuda_graph.h"
#include "engine/device/plugin_abi.h"

// Declared here because not every toolkit has the header; LibTorch's CUDA half loads the library.
extern "C" size_t cublasLtGetVersion();

namespace wan {
namespace {

int DeviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

int PciBusId(int device, char* out, int size) {
  return cudaDeviceGetPCIBusId(out, size, device) == cudaSuccess ? 0 : -1;
}

int LimitMemory(int device, size_t bytes) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return -1;
  const double fraction =
      static_cast<double>(bytes) / static_cast<double>(properties.totalGlobalMem);
  if (fraction > 1) return -1;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction,
                                                     static_cast<c10::DeviceIndex>(device));
  return 0;
}

// Expandable segments grow and shrink by pages. So a job holds only the memory that it needs, and
// wastes none in blocks that its next stage cannot use. If the user sets LibTorch's environment
// variables for the allocator, they take precedence.
void PrepareAllocator() {
  // Sets the kind of memory handle. Any kind will do, because the process shares no GPU memory with
  // others. By default, the first allocation tries a kind of handle that most drivers refuse, and
  // stores the result in a global variable. If the threads of two devices make their first
  // allocations at the same time, one may fail with "operation not permitted".
  using c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig;
  using c10::cuda::CUDACachingAllocator::Expandable_Segments_Handle_Type;
  CUDAAllocatorConfig::set_expandable_segments_handle_type(
      Expandable_Segments_Handle_Type::POSIX_FD);
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr ||
      std::getenv("PYTORCH_ALLOC_CONF") != nullptr) {
    return;
  }
  c10::CachingAllocator::setAllocatorSettings("expandable_segments:True");
}

// While an object of this class lives, `device` is current in the calling thread. Afterwards the
// previous device is current again, unless this process has no context on it. Converts to false if
// the driver refused to select the device.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    ok_ = cudaSetDevice(device) == cudaSuccess;
  }
  ~OnDevice() { c10::cuda::MaybeSetDevice(static_cast<c10::DeviceIndex>(before_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  explicit operator bool() const { return ok_; }

 private:
  int before_ = 0;
  bool ok_ = false;
};

int LockHost(int device, void* memory, size_t bytes) {
  const OnDevice on_device(device);
  if (!on_device) return -1;
  const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  // Clear the error here, so that later calls do not see it; the caller reports it.
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess ? 0 : -1;
}

int UnlockHost(int device, void* memory) {
  const OnDevice on_device(device);
  if (!on_device) return -1;
  return cudaHostUnregister(memory) == cudaSuccess ? 0 : -1;
}

int FindProblem(int device, char* out, int size) {
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) {
    // The first call may return an error of earlier work that does not last, so only the second
    // call counts.
    cudaDeviceSynchronize();
    cudaGetLastError();
    error = cudaDeviceSynchronize();
  }
  if (error == cudaSuccess) return 0;
  std::snprintf(out, static_cast<size_t>(size), "%s (%s)", cudaGetErrorName(error),
                cudaGetErrorString(error));
  return -1;
}

int MemoryInfo(int device, size_t* free_bytes, size_t* total_bytes) {
  const OnDevice on_device(device);
  if (!on_device) return -1;
  return cudaMemGetInfo(free_bytes, total_bytes) == cudaSuccess ? 0 : -1;
}

int Libraries(char* out, int size) {
  int runtime = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) return -1;
  std::snprintf(out, static_cast<size_t>(size), "CUDA %d, cuBLAS %zu", runtime,
                cublasLtGetVersion());
  return 0;
}

int Describe(int device, char* out, int size) {
  cudaDeviceProp properties;
  int driver = 0;
  char libraries[64] = {};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess ||
      cudaDriverGetVersion(&driver) != cudaSuccess ||
      Libraries(libraries, sizeof(libraries)) != 0) {
    return -1;
  }
  std::snprintf(out, static_cast<size_t>(size), "%s with %d multiprocessors, driver %d, %s",
                properties.name, properties.multiProcessorCount, driver, libraries);
  return 0;
}

}  // namespace
}  // namespace wan

extern "C" const wan::CudaPlugin* wan_cuda_plugin() {
  static const wan::CudaPlugin plugin = [] {
    wan::CudaPlugin table;
    table.ops = &wan::GetCudaOps();
    table.vae_ops = &wan::GetVaeCudaOps();
    table.architectures = WAN_CUDA_ARCHS;
    table.device_count = &wan::DeviceCount;
    table.pci_bus_id = &wan::PciBusId;
    table.limit_memory = &wan::LimitMemory;
    table.prepare_allocator = &wan::PrepareAllocator;
    table.lock_host = &wan::LockHost;
    table.unlock_host = &wan::UnlockHost;
    table.find_problem = &wan::FindProblem;
    table.memory_info = &wan::MemoryInfo;
    table.libraries = &wan::Libraries;
    table.describe = &wan::Describe;
    table.record_graph = &wan::RecordCudaGraph;
    table.replay_graph = &wan::ReplayCudaGraph;
    return table;
  }();
  return &plugin;
}
