// Hands things from one thread to another, one at a time.
#pragma once

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// One thread puts, another takes; any may close. Thread-safe.
template <typename Thing>
class Handover {
 public:
  // Waits until the thing before has been taken. Returns false if it was closed.
  bool Put(Thing thing) {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || !thing_.has_value();
    };
    mutex_.Await(absl::Condition(&ready));
    if (closed_) return false;
    thing_ = std::move(thing);
    return true;
  }

  // Waits for the next thing. Returns nullopt if it was closed.
  std::optional<Thing> Take() {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || thing_.has_value();
    };
    mutex_.Await(absl::Condition(&ready));
    if (closed_) return std::nullopt;
    return std::exchange(thing_, std::nullopt);
  }

  // Lets both threads go on with nothing.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    thing_.reset();
  }

 private:
  absl::Mutex mutex_;
  std::optional<Thing> thing_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace wan
