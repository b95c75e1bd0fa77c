// Makes blocking calls of functions that answer by a callback.
#pragma once

#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "server/store/disk_wait.h"

namespace wan::server {

namespace internal {

// A DiskWait for threads that may block; no other thread takes over meanwhile.
class WaitsAnyway final : public DiskWait {
  void Begin() override {}
  void End() override {}
};

}  // namespace internal

// Calls `begin` with a `done`, which any thread must call once, and returns the argument of `done`.
// Use AwaitDone only on threads that may wait for the disk, and in tests.
template <typename Result, typename Begin>
Result AwaitDone(const Begin& begin) {
  internal::WaitsAnyway waits;
  DiskWait* const of_thread = DiskWait::OfThisThread();
  const MayWaitForDisk may_wait(of_thread != nullptr ? *of_thread : waits);
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
