// The interface of libwan_cuda.so: one table of functions behind one symbol. The plug-in fills the
// table (cuda_plugin.cc) and plugin_loader.h reads it; nothing else looks up symbols.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {

// Functions that return int return 0 for success. Any thread may call them.
struct CudaPlugin {
  // Set by the plug-in. The loader compares it with its own value, to detect a plug-in from another
  // build.
  size_t table_bytes = sizeof(CudaPlugin);

  // The kernels, which register themselves when the library loads.
  const CudaOps* ops = nullptr;
  const VaeCudaOps* vae_ops = nullptr;

  // The GPU architectures that the kernels were compiled for, for example "80;89;90a".
  const char* architectures = "";

  // Returns the number of GPUs that the driver offers; 0 without a driver.
  int (*device_count)() = nullptr;
  // Writes a GPU's PCI bus id, zero-terminated, to `out`, which has `size` bytes.
  int (*pci_bus_id)(int device, char* out, int size) = nullptr;
  // Makes the caching allocator refuse more than `bytes` on that GPU, as a smaller card would.
  int (*limit_memory)(int device, size_t bytes) = nullptr;
  // Sets up LibTorch's caching allocator. Call it before anything is allocated.
  void (*prepare_allocator)() = nullptr;
  // Lock and unlock pages of host memory for copies to and from every GPU. They use the context of
  // `device`; otherwise CUDA would create one on GPU 0, which takes 518 MiB there.
  int (*lock_host)(int device, void* memory, size_t bytes) = nullptr;
  int (*unlock_host)(int device, void* memory) = nullptr;
  // Waits for the GPU, clears transient errors, and returns 0 if the GPU still works. Otherwise
  // writes the driver's message, zero-terminated, to `out`, which has `size` bytes.
  int (*find_problem)(int device, char* out, int size) = nullptr;
  // Writes free and total bytes of a GPU, over all processes.
  int (*memory_info)(int device, size_t* free_bytes, size_t* total_bytes) = nullptr;
  // Writes what decides a kernel's result besides its input: card name, number of multiprocessors,
  // and versions of driver and CUDA.
  int (*describe)(int device, char* out, int size) = nullptr;

  // For device_graph.h. Unlike the others, these throw.
  std::shared_ptr<void> (*record_graph)(int device, const std::function<void()>& work) = nullptr;
  void (*replay_graph)(void* graph) = nullptr;
};

// The plug-in's only exported C function; it never returns null.
inline constexpr char kCudaPluginSymbol[] = "wan_cuda_plugin";
using CudaPluginEntry = const CudaPlugin* (*)();

}  // namespace wan
