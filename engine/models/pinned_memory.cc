#include "engine/models/pinned_memory.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "engine/ops/cuda_plugin.h"

namespace wan {
namespace {

// The plug-in's C entry points (engine/cuda/plugin.cc); 0 is success.
struct HostRegistry {
  int (*add)(void* memory, size_t bytes) = nullptr;
  int (*remove)(void* memory) = nullptr;
};

const HostRegistry& Registry() {
  static const HostRegistry registry = [] {
    HostRegistry found;
    const absl::StatusOr<void*> plugin = OpenCudaPlugin();
    if (!plugin.ok()) return found;
    found.add = reinterpret_cast<int (*)(void*, size_t)>(dlsym(*plugin, "wan_cuda_lock_host"));
    found.remove = reinterpret_cast<int (*)(void*)>(dlsym(*plugin, "wan_cuda_unlock_host"));
    return found;
  }();
  return registry;
}

// Has the kernel hand out every page now, on many threads: locking memory asks for each of them,
// one after the other.
void Populate(std::byte* memory, int64_t bytes) {
  constexpr int64_t kPart = int64_t{64} << 20;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t first = next.fetch_add(kPart); first < bytes; first = next.fetch_add(kPart)) {
      // Only a hint: where the kernel does not know it, the lock does the work.
      madvise(memory + first, static_cast<size_t>(std::min(kPart, bytes - first)),
              MADV_POPULATE_WRITE);
    }
  };
  std::vector<std::thread> helpers;
  const int64_t parts = (bytes + kPart - 1) / kPart;
  for (int64_t i = 1; i < std::min<int64_t>(parts, HostCopyThreads()); ++i) {
    helpers.emplace_back(work);
  }
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

int HostCopyThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
}

at::Tensor AllocateHostMemory(int64_t bytes, at::Device device) {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TORCH_CHECK_WITH(OutOfMemoryError, memory != MAP_FAILED, "no ", bytes,
                   " bytes of host memory for weights");
  const bool locked = device.is_cuda();
  if (locked) {
    madvise(memory, size, MADV_HUGEPAGE);
    Populate(static_cast<std::byte*>(memory), static_cast<int64_t>(size));
    if (Registry().add == nullptr || Registry().add(memory, size) != 0) {
      munmap(memory, size);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the driver does not lock ", bytes,
                       " bytes of host memory for weights");
    }
  }
  return at::from_blob(
      memory, {bytes},
      [size, locked](void* data) {
        if (locked) Registry().remove(data);
        munmap(data, size);
      },
      at::TensorOptions().dtype(at::kByte));
}

}  // namespace wan
