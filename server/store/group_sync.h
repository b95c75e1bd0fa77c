// Shares one sync of a file between all waiting callers, and runs a store's writes on one thread.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Thread-safe. Calls that arrive while a sync runs share the next one, so each waits for at most
// two syncs, however many calls there are. Only the object's own thread blocks.
class GroupSync {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // `sync` makes all earlier writes durable. It is called on the object's thread, one call at a
  // time, with no lock held.
  explicit GroupSync(std::function<absl::Status()> sync);
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;
  // Syncs once more if callers wait.
  ~GroupSync();

  // Calls `done` with OK once all earlier writes are durable, or with the error of the sync. `done`
  // is called on the object's thread with no lock held, and must not block.
  void Await(Done done);

  // Number of calls that wait for a sync that has not begun.
  int waiting() const;

 private:
  void Loop();

  const std::function<absl::Status()> sync_;
  mutable absl::Mutex mutex_;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

// Runs posted tasks one by one, in order, on a thread of its own. Thread-safe.
class SerialThread {
 public:
  SerialThread() : thread_([this] { Loop(); }) {}
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;
  // Runs all posted tasks before it returns.
  ~SerialThread();

  void Post(std::function<void()> task);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace wan::server
