// Counts the memory of CPU tensors, as a stand-in for LibTorch's allocator.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <set>
#include <string>

namespace wan {

// While one is alive, every allocation of a CPU tensor is counted in the bytes that the allocator
// of a GPU would hold for it (AllocatedBytes). One at a time. Blocks may outlive it.
//
//   PeakAllocator memory;
//   memory.Begin();
//   transformer.Forward(...);
//   memory.peak();
class PeakAllocator {
 public:
  // Allocations inside of these operators (RECORD_USER_SCOPE) are not counted, for instance because
  // on a GPU a kernel does without them.
  explicit PeakAllocator(std::set<std::string> uncounted_scopes = {});
  ~PeakAllocator();
  PeakAllocator(const PeakAllocator&) = delete;
  PeakAllocator& operator=(const PeakAllocator&) = delete;

  // Counts from here on: bytes that are held already do not count.
  void Begin();

  // The most bytes that were held at once since Begin, besides those held at Begin.
  uint64_t peak() const;
  // Bytes that are held now, besides those held at Begin.
  uint64_t held() const;

 private:
  at::CallbackHandle scopes_;
};

}  // namespace wan
