// Whether the data folder takes writes: what stops new work while it does not, and starts it again.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"

namespace wan::server {

// Thread-safe. Costs nothing while the storage is well; after a failure one thread probes it once a
// second until it is well again.
class StorageWatch {
 public:
  // Both are called on the watch's thread with no lock held: `probe` says whether the storage takes
  // writes, `changed` hears OK, or why it does not, whenever that has changed.
  struct Calls {
    std::function<absl::Status()> probe;
    std::function<void(const absl::Status&)> changed;
  };

  // `clock` must outlive the watch.
  explicit StorageWatch(Clock& clock) : clock_(clock) {}
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;
  // Stops.
  ~StorageWatch();

  // Begins the thread. Called once.
  void Start(Calls calls);

  // OK, or why nothing can be stored now.
  absl::Status status() const;

  // A write failed with `problem`. From now on status() says so, until a probe goes well.
  void Report(const absl::Status& problem);

  // Once this returns neither call is running or will run again. Idempotent.
  void Stop();

 private:
  void Loop(const Calls& calls);

  Clock& clock_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace wan::server
