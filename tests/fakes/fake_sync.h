// Stands for a disk whose syncs a test counts, holds and makes fail.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan::fakes {

// Thread-safe.
class FakeSync {
 public:
  std::function<absl::Status()> function() {
    return [this] {
      absl::MutexLock lock(&mutex_);
      const int number = ++begun_;
      const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_; };
      mutex_.Await(absl::Condition(&free));
      return number > well_ ? status_ : absl::OkStatus();
    };
  }
  void Hold(bool hold) {
    absl::MutexLock lock(&mutex_);
    held_ = hold;
  }
  void Fail(const absl::Status& status) { FailAfter(0, status); }
  // All syncs except the first `well` ones, counted from the start, fail with `status`.
  void FailAfter(int well, const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    well_ = well;
    status_ = status;
  }
  void AwaitBegun(int count) {
    absl::MutexLock lock(&mutex_);
    const auto begun = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return begun_ >= count; };
    mutex_.Await(absl::Condition(&begun));
  }
  int begun() {
    absl::MutexLock lock(&mutex_);
    return begun_;
  }

 private:
  absl::Mutex mutex_;
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int well_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::fakes
