// Blocking forms of calls that end by a callback.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Calls `begin` with a `done`, which any thread must call once, and returns what `done` was given.
// Only for threads that may wait for the disk: those of their own, and tests.
template <typename Result, typename Begin>
Result AwaitDone(const Begin& begin) {
  absl::Mutex mutex;
  std::optional<Result> result;
  begin([&](Result given) {
    absl::MutexLock lock(&mutex);
    result = std::move(given);
  });
  absl::MutexLock lock(&mutex);
  const auto given = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return result.has_value(); };
  mutex.Await(absl::Condition(&given));
  return *std::move(result);
}

}  // namespace wan::server
