// Memory that ends at a chosen place of a chosen stage.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/api/recorder.h"

namespace wan {

// Counts allocations and refuses one of them.
class AllocationFault {
 public:
  virtual ~AllocationFault() = default;

  // From now on the n-th allocation (1 is the next) throws c10::OutOfMemoryError, and only it.
  virtual void FailAt(int64_t n) = 0;
  virtual void Disarm() = 0;

  // Since the last FailAt, until Disarm.
  virtual int64_t allocations() const = 0;
  virtual bool failed() const = 0;
};

// Arms a fault with the first span of a stage and disarms it with that span's end.
class StageFault final : public TelemetrySink {
 public:
  // Never fails: only counts the stage's allocations.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  StageFault(AllocationFault& fault, Stage stage, int64_t n)
      : fault_(fault), stage_(stage), n_(n) {}

  void OnSpanStart(const SpanStart& span) override {
    if (span.stage == stage_ && spans_++ == 0) fault_.FailAt(n_);
  }

  void OnSpanEnd(const SpanRecord& record) override {
    if (record.stage != stage_ || spans_ != 1) return;
    allocations_ = fault_.allocations();
    fault_.Disarm();
  }

  // Of the stage, once it is over.
  int64_t allocations() const { return allocations_; }
  int spans() const { return spans_; }

 private:
  AllocationFault& fault_;
  const Stage stage_;
  const int64_t n_;
  int64_t allocations_ = 0;
  int spans_ = 0;
};

}  // namespace wan
