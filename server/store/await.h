// Makes blocking calls of functions that answer by a callback.
#pragma once

#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"

namespace wan::server {

// Calls `begin` with a `done`, which any thread must call once, and returns the argument of `done`.
// Use it only on threads that may wait for the disk, and in tests.
template <typename Result, typename Begin>
Result AwaitDone(const Begin& begin) {
  absl::Notification ended;
  std::optional<Result> result;
  begin([&](Result given) {
    result = std::move(given);
    ended.Notify();
  });
  ended.WaitForNotification();
  return *std::move(result);
}

}  // namespace wan::server
