#include "tests/support/peak_allocator.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/costs/allocator_rounding.h"

namespace wan {
namespace {

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* real) : real_(real) {}

  c10::DataPtr allocate(size_t bytes) override;
  // LibTorch's oneDNN allocates without a DataPtr, so context and data must be the same pointer.
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    real_->copy_data(to, from, bytes);
  }

  void Free(void* data) {
    {
      const std::lock_guard lock(mutex_);
      const auto block = blocks_.find(data);
      if (block != blocks_.end()) {
        held_ -= block->second;
        blocks_.erase(block);
      }
    }
    real_->raw_deleter()(data);
  }

  void Begin() {
    const std::lock_guard lock(mutex_);
    base_ = held_;
    peak_ = held_;
  }
  int64_t held() const {
    const std::lock_guard lock(mutex_);
    return held_ - base_;
  }
  int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_ - base_;
  }

  void Reset(std::set<std::string> uncounted_scopes) {
    const std::lock_guard lock(mutex_);
    uncounted_scopes_ = std::move(uncounted_scopes);
  }
  // Returns whether the calling thread's scope is not counted; the thread has to leave it then.
  bool Enter(const char* scope) {
    const std::lock_guard lock(mutex_);
    const bool uncounted = uncounted_scopes_.contains(scope);
    if (uncounted) ++inside_;
    return uncounted;
  }
  static void Leave() { --inside_; }

  c10::Allocator* real() const { return real_; }

 private:
  c10::Allocator* const real_;
  mutable std::mutex mutex_;
  std::map<void*, int64_t> blocks_;
  std::set<std::string> uncounted_scopes_;
  // Of each thread: beside one that is inside, what the others allocate counts.
  static thread_local int inside_;
  int64_t held_ = 0;
  int64_t peak_ = 0;
  int64_t base_ = 0;
};

thread_local int CountingAllocator::inside_ = 0;

// Lives for ever: blocks may outlive a PeakAllocator.
CountingAllocator& Counting() {
  static auto* const allocator = new CountingAllocator(c10::GetAllocator(c10::kCPU));
  return *allocator;
}

void FreeBlock(void* data) { Counting().Free(data); }

c10::DataPtr CountingAllocator::allocate(size_t bytes) {
  c10::DataPtr real = real_->allocate(bytes);
  void* const data = real.release_context();
  if (data != nullptr) {
    const std::lock_guard lock(mutex_);
    if (inside_ == 0) {
      const int64_t rounded = AllocatedBytes(static_cast<int64_t>(bytes));
      blocks_[data] = rounded;
      held_ += rounded;
      peak_ = std::max(peak_, held_);
    }
  }
  return {data, data, &FreeBlock, c10::Device(c10::kCPU)};
}

c10::DeleterFnPtr CountingAllocator::raw_deleter() const { return &FreeBlock; }

struct InsideUncounted final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> EnterScope(const at::RecordFunction& scope) {
  return Counting().Enter(scope.name()) ? std::make_unique<InsideUncounted>() : nullptr;
}

void LeaveScope(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr) CountingAllocator::Leave();
}

constexpr uint8_t kPriority = 255;

}  // namespace

PeakAllocator::PeakAllocator(std::set<std::string> uncounted_scopes) {
  Counting().Reset(std::move(uncounted_scopes));
  scopes_ = at::addGlobalCallback(
      at::RecordFunctionCallback(&EnterScope, &LeaveScope).scopes({at::RecordScope::USER_SCOPE}));
  c10::SetAllocator(c10::kCPU, &Counting(), kPriority);
  Begin();
}

PeakAllocator::~PeakAllocator() {
  c10::SetAllocator(c10::kCPU, Counting().real(), kPriority);
  at::removeCallback(scopes_);
}

void PeakAllocator::Begin() { Counting().Begin(); }
uint64_t PeakAllocator::peak() const { return static_cast<uint64_t>(Counting().peak()); }
uint64_t PeakAllocator::held() const { return static_cast<uint64_t>(Counting().held()); }

}  // namespace wan
