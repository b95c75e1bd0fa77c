// One sync of a file for all who wait for one.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Thread-safe. Callers that arrive while a sync runs share the next one, so that a slow disk costs
// each of them at most two syncs, however many they are.
class GroupSync {
 public:
  // `sync` makes all durable that was written before it was called; one call at a time, on the
  // thread of a caller, with no lock held.
  explicit GroupSync(std::function<absl::Status()> sync) : sync_(std::move(sync)) {}

  // Returns once what was written before this call is durable, or why it may not be.
  absl::Status Await();

  // Callers that wait for a sync which has not begun.
  int waiting() const;

 private:
  struct Round {
    bool done = false;
    absl::Status status;
  };

  const std::function<absl::Status()> sync_;
  mutable absl::Mutex mutex_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool syncing_ ABSL_GUARDED_BY(mutex_) = false;
  // The sync that begins next.
  std::shared_ptr<Round> next_ ABSL_GUARDED_BY(mutex_) = std::make_shared<Round>();
};

}  // namespace wan::server
