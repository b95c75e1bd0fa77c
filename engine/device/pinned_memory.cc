#include "engine/device/pinned_memory.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "engine/device/plugin_loader.h"

namespace wan {
namespace {

// Returns the allocator for pinned memory; null if the plug-in is not loaded, in which case
// allocations for a CUDA device fail.
const CudaPlugin* Plugin() {
  const absl::StatusOr<const CudaPlugin*> plugin = LoadCudaPlugin();
  return plugin.ok() ? *plugin : nullptr;
}

// Touches every page, with many threads. Untouched pages would make pinning slow, because the
// kernel would then provide them one by one.
void Populate(std::byte* memory, int64_t bytes) {
  constexpr int64_t kPart = int64_t{64} << 20;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t first = next.fetch_add(kPart); first < bytes; first = next.fetch_add(kPart)) {
      // madvise is only a hint: if the kernel does not support it, pinning provides the pages.
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
  TORCH_CHECK_WITH(OutOfMemoryError, memory != MAP_FAILED, "the host did not give ", bytes,
                   " bytes of memory for weights");
  const bool locked = device.is_cuda();
  if (locked) {
    madvise(memory, size, MADV_HUGEPAGE);
    Populate(static_cast<std::byte*>(memory), static_cast<int64_t>(size));
    if (Plugin() == nullptr || Plugin()->lock_host(device.index(), memory, size) != 0) {
      munmap(memory, size);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the driver could not lock ", bytes,
                       " bytes of host memory for weights");
    }
  }
  return at::from_blob(
      memory, {bytes},
      [size, locked, device](void* data) {
        if (locked) Plugin()->unlock_host(device.index(), data);
        munmap(data, size);
      },
      at::TensorOptions().dtype(at::kByte));
}

}  // namespace wan
