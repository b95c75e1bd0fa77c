#include "tests/support/failing_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <utility>

namespace wan {
namespace {

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* real) : real_(real) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes > 0 && armed) {
      const int64_t n = ++allocations;
      if (n == fail_at) {
        failed = true;
        if (thrower) thrower();
        TORCH_CHECK_WITH(OutOfMemoryError, false, "injected: allocation ", n, " of ", bytes,
                         " bytes");
      }
    }
    return real_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return real_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    real_->copy_data(to, from, bytes);
  }

  c10::Allocator* real() const { return real_; }

  std::atomic<bool> armed = false;
  std::atomic<bool> failed = false;
  std::atomic<int64_t> allocations = 0;
  std::atomic<int64_t> fail_at = 0;
  std::function<void()> thrower;  // set while nothing is armed

 private:
  c10::Allocator* const real_;
};

// Lives for ever: tensors of a test may outlive its FailingAllocator.
CountingAllocator& Counting() {
  static auto* const allocator = new CountingAllocator(c10::GetAllocator(c10::kCPU));
  return *allocator;
}

constexpr uint8_t kPriority = 255;

}  // namespace

FailingAllocator::FailingAllocator() {
  Disarm();
  Counting().thrower = nullptr;
  c10::SetAllocator(c10::kCPU, &Counting(), kPriority);
}

FailingAllocator::~FailingAllocator() {
  c10::SetAllocator(c10::kCPU, Counting().real(), kPriority);
}

void FailingAllocator::FailAt(int64_t n) {
  Counting().allocations = 0;
  Counting().failed = false;
  Counting().fail_at = n;
  Counting().armed = true;
}

void FailingAllocator::ThrowWith(std::function<void()> thrower) {
  Disarm();
  Counting().thrower = std::move(thrower);
}

void FailingAllocator::Disarm() { Counting().armed = false; }

int64_t FailingAllocator::allocations() const { return Counting().allocations; }
bool FailingAllocator::failed() const { return Counting().failed; }

}  // namespace wan
