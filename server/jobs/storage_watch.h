// Watches whether the data folder takes writes and whether its disk has room. While the folder
// takes no writes, new jobs are refused and queued jobs wait.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"

namespace wan::server {

// Thread-safe. A thread of the watch checks the disk's room once a second. After Report the thread
// also probes the folder once a second, until a probe succeeds.
class StorageWatch {
 public:
  // The watch calls the functions on its thread with no lock held. `probe` returns OK if the folder
  // takes writes, otherwise the reason why not. `room` returns OK if the disk has enough room,
  // otherwise how much is missing. The watch calls `changed` when writes begin to fail or to
  // succeed, and `room_changed` when `room` returns another status than before.
  struct Calls {
    std::function<absl::Status()> probe;
    std::function<void(const absl::Status&)> changed;
    std::function<absl::Status()> room;
    std::function<void(const absl::Status&)> room_changed;
  };

  // `clock` must outlive the watch.
  explicit StorageWatch(Clock& clock) : clock_(clock.Steady()) {}
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;
  // Calls Stop if nobody has.
  ~StorageWatch();

  // Call Start at most once. Starts the thread.
  void Start(Calls calls);

  // Returns OK if the folder takes writes, otherwise the reason why not.
  absl::Status status() const;

  // Call Report when a write has failed with `problem`. status() returns `problem` until a probe
  // succeeds. Wakes the watch's thread.
  void Report(const absl::Status& problem);

  // Ends the thread; no function of Calls runs or is called any more when Stop returns. Later calls
  // do nothing.
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
