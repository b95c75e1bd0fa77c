// Hands values from one thread to another, one at a time.
#pragma once

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// One thread calls Put, another thread calls Take. Any thread may call Close. Thread-safe.
template <typename Thing>
class Handover {
 public:
  // Waits until the other thread has taken the previous value, then stores `thing`. Returns false
  // if Close was called.
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

  // Waits for the next value and returns it. Returns nullopt if Close was called.
  std::optional<Thing> Take() {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || thing_.has_value();
    };
    mutex_.Await(absl::Condition(&ready));
    if (closed_) return std::nullopt;
    return std::exchange(thing_, std::nullopt);
  }

  // Wakes both threads. Waiting and later calls of Put return false; those of Take return nullopt.
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
