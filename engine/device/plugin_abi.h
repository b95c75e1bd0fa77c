// The interface of libwan_cuda.so: one table of functions, which one symbol returns. The plug-in
// fills the table (cuda_plugin.cc), and plugin_loader.h reads it. No other code looks up symbols.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {

// A function that returns int returns 0 for success. Any thread may call the functions.
struct CudaPlugin {
  // The size of the table, which the plug-in sets. The loader compares it with sizeof(CudaPlugin),
  // to notice a plug-in from a different build.
  size_t table_bytes = sizeof(CudaPlugin);

  // The tables of kernels. Each kernel's file adds its kernels when the library is loaded.
  const CudaOps* ops = nullptr;
  const VaeCudaOps* vae_ops = nullptr;

  // The GPU architectures for which the kernels were compiled, for example "80;89;90a".
  const char* architectures = "";

  // Returns the number of GPUs that the driver offers; 0 if there is no driver.
  int (*device_count)() = nullptr;
  // Writes a GPU's PCI bus id, zero-terminated, to `out`, which has `size` bytes.
  int (*pci_bus_id)(int device, char* out, int size) = nullptr;
  // Makes LibTorch's allocator refuse more than `bytes` on this GPU, as if the card were smaller.
  int (*limit_memory)(int device, size_t bytes) = nullptr;
  // Sets up LibTorch's allocator for GPU memory. Call prepare_allocator before anything is
  // allocated on a GPU.
  void (*prepare_allocator)() = nullptr;
  // lock_host locks (pins) pages of host memory for copies to and from every GPU; unlock_host
  // unlocks them. Both use the context of `device`. Without this context CUDA would create a
  // context on GPU 0, which takes 518 MiB of that GPU.
  int (*lock_host)(int device, void* memory, size_t bytes) = nullptr;
  int (*unlock_host)(int device, void* memory) = nullptr;
  // Waits for the GPU and clears errors that do not last. Returns 0 if the GPU still works.
  // Otherwise writes the driver's message, zero-terminated, to `out`, which has `size` bytes.
  int (*find_problem)(int device, char* out, int size) = nullptr;
  // Writes the free bytes and the total bytes of a GPU, over all processes.
  int (*memory_info)(int device, size_t* free_bytes, size_t* total_bytes) = nullptr;
  // Writes the versions of the loaded libraries that LibTorch does not report, zero-terminated, for
  // example "CUDA 13000, cuBLAS 130002", to `out`, which has `size` bytes.
  int (*libraries)(char* out, int size) = nullptr;
  // Writes the facts that, with the input, decide the result of a kernel: the card's name, the
  // number of multiprocessors, and the versions of driver and libraries.
  int (*describe)(int device, char* out, int size) = nullptr;

  // Two functions for device_graph.h. Unlike the functions above, these two throw exceptions.
  std::shared_ptr<void> (*record_graph)(int device, const std::function<void()>& work) = nullptr;
  void (*replay_graph)(void* graph) = nullptr;
};

// The plug-in's only exported C function; it never returns null.
inline constexpr char kCudaPluginSymbol[] = "wan_cuda_plugin";
using CudaPluginEntry = const CudaPlugin* (*)();

}  // namespace wan
