// Memory of the CPU that ends when a test says so: stands in for LibTorch's allocator.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/support/stage_fault.h"

namespace wan {

// Counts and refuses allocations of CPU tensors, from any thread, while one is alive. One at a
// time.
class FailingAllocator final : public AllocationFault {
 public:
  FailingAllocator();
  ~FailingAllocator() override;
  FailingAllocator(const FailingAllocator&) = delete;
  FailingAllocator& operator=(const FailingAllocator&) = delete;

  void FailAt(int64_t n) override;
  // What the refused allocation throws; c10::OutOfMemoryError unless told. `thrower` must throw.
  void ThrowWith(std::function<void()> thrower);
  void Disarm() override;
  int64_t allocations() const override;
  bool failed() const override;
};

}  // namespace wan
