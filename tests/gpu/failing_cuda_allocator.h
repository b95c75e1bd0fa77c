// Memory of a GPU that ends when a test says so.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

#include "tests/support/stage_fault.h"

namespace wan {

// Counts and refuses allocations of CUDA tensors by this thread, while one is alive. LibTorch's
// caching allocator reports each allocation when it is made, and the report throws: the block that
// it was about is lost to the process.
class FailingCudaAllocator final : public AllocationFault {
 public:
  FailingCudaAllocator()
      : counter_(std::make_shared<Counter>()),
        guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}

  void FailAt(int64_t n) override {
    counter_->allocations = 0;
    counter_->failed = false;
    counter_->fail_at = n;
    counter_->armed = true;
  }
  void Disarm() override { counter_->armed = false; }
  int64_t allocations() const override { return counter_->allocations; }
  bool failed() const override { return counter_->failed; }

 private:
  struct Counter final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device device) override {
      if (!armed || bytes <= 0 || !device.is_cuda()) return;
      if (++allocations != fail_at) return;
      failed = true;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "injected: allocation ", allocations, " of ", bytes,
                       " bytes");
    }
    bool memoryProfilingEnabled() const override { return true; }

    bool armed = false;
    bool failed = false;
    int64_t allocations = 0;
    int64_t fail_at = 0;
  };

  const std::shared_ptr<Counter> counter_;
  const c10::DebugInfoGuard guard_;
};

}  // namespace wan
