// Knows whether the data folder takes writes. New jobs are refused, and queued jobs wait, while it
// does not.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"

namespace wan::server {

// Thread-safe. Does nothing while writes succeed. After Report its thread probes the folder once a
// second until a probe succeeds.
class StorageWatch {
 public:
  // Both are called on the watch's thread with no lock held. `probe` returns OK if the folder takes
  // writes, else why not. `changed` is called with the new status whenever it changes.
  struct Calls {
    std::function<absl::Status()> probe;
    std::function<void(const absl::Status&)> changed;
  };

  // `clock` must outlive the watch.
  explicit StorageWatch(Clock& clock) : clock_(clock.Steady()) {}
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;
  // Calls Stop().
  ~StorageWatch();

  // Call once. Starts the thread.
  void Start(Calls calls);

  // Returns OK if the folder takes writes, else why not.
  absl::Status status() const;

  // Call when a write has failed with `problem`. status() returns it until a probe succeeds.
  void Report(const absl::Status& problem);

  // Waits for a running `probe` or `changed` and ends the thread; neither runs again. Idempotent.
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
