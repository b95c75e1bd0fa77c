// Memory that ends when a test says so: stands in for LibTorch's allocator of the CPU.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "engine/api/recorder.h"

namespace wan {

// Counts and refuses allocations of CPU tensors, from any thread, while one is alive. One at a
// time.
class FailingAllocator {
 public:
  FailingAllocator();
  ~FailingAllocator();
  FailingAllocator(const FailingAllocator&) = delete;
  FailingAllocator& operator=(const FailingAllocator&) = delete;

  // From now on the n-th allocation (1 is the next) throws c10::OutOfMemoryError, and only it.
  void FailAt(int64_t n);
  void Disarm();

  // Since the last Disarm.
  int64_t allocations() const;
  bool failed() const;
};

// Arms the allocator with the first span of a stage and disarms it with that span's end.
class StageFault final : public TelemetrySink {
 public:
  // Never fails: only counts the stage's allocations.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  StageFault(FailingAllocator& allocator, std::string stage, int64_t n)
      : allocator_(allocator), stage_(std::move(stage)), n_(n) {}

  void OnSpanStart(const SpanStart& span) override;
  void OnSpanEnd(const SpanRecord& record) override;

  // Of the stage, once it is over.
  int64_t allocations() const { return allocations_; }
  int spans() const { return spans_; }

 private:
  FailingAllocator& allocator_;
  const std::string stage_;
  const int64_t n_;
  int64_t allocations_ = 0;
  int spans_ = 0;
};

}  // namespace wan
