// What libwan_cuda.so offers the program that loads it: one table of functions, behind one symbol.
// The plug-in fills it (cuda_plugin.cc), plugin_loader.h reads it, and nobody else looks up
// symbols.
#pragma once

#include <cstddef>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {

// Functions that return int give 0 for success. All may be called from any thread.
struct CudaPlugin {
  // Set by the plug-in; a loader that was built with another table has another size.
  size_t table_bytes = sizeof(CudaPlugin);

  // The kernels, as they entered themselves when the library was loaded.
  const CudaOps* ops = nullptr;
  const VaeCudaOps* vae_ops = nullptr;

  // GPUs that the driver offers; 0 without a driver.
  int (*device_count)() = nullptr;
  // Writes the PCI bus id of a GPU, with its end, into `out`, which holds `size` bytes.
  int (*pci_bus_id)(int device, char* out, int size) = nullptr;
  // The caching allocator then refuses what is beyond `bytes` on that GPU, as a smaller card would.
  int (*limit_memory)(int device, size_t bytes) = nullptr;
  // Sets up LibTorch's caching allocator; to be called before anything is allocated.
  void (*prepare_allocator)() = nullptr;
  // Locks pages of host memory for copies of every GPU, and unlocks them. The calls go through the
  // context of `device`; without it CUDA would make one on GPU 0, which costs 518 MiB there.
  int (*lock_host)(int device, void* memory, size_t bytes) = nullptr;
  int (*unlock_host)(int device, void* memory) = nullptr;
  // Waits for the GPU and gives 0 if it still works. Otherwise writes the driver's words, with
  // their end, into `out`, which holds `size` bytes. Errors that do not last are forgotten.
  int (*find_problem)(int device, char* out, int size) = nullptr;
  // What the driver has left of a GPU for anybody, and what it has in all.
  int (*memory_info)(int device, size_t* free_bytes, size_t* total_bytes) = nullptr;
  // Writes what decides a kernel's bits besides its input: the card's name, its number of
  // multiprocessors, and the versions of driver and CUDA.
  int (*describe)(int device, char* out, int size) = nullptr;
};

// The plug-in's only exported C function; it never returns null.
inline constexpr char kCudaPluginSymbol[] = "wan_cuda_plugin";
using CudaPluginEntry = const CudaPlugin* (*)();

}  // namespace wan
