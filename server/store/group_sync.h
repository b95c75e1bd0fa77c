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

// Thread-safe. Calls that arrive while a sync runs share the next one, so that a slow disk costs
// each of them at most two syncs, however many they are. Only the object's own thread waits.
class GroupSync {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // `sync` makes all earlier writes durable. It is called on the object's thread, one call at a
  // time, with no lock held.
  explicit GroupSync(std::function<absl::Status()> sync);
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;
  // Syncs once more for waiting callers.
  ~GroupSync();

  // Calls `done` once all earlier writes are durable, or with the reason why they may not be; on
  // the object's thread with no lock held. `done` must not block.
  void Await(Done done);

  // Calls that wait for a sync which has not begun.
  int waiting() const;

 private:
  void Loop();

  const std::function<absl::Status()> sync_;
  mutable absl::Mutex mutex_;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

// Thread-safe. Carries tasks out one after the other on a thread of its own, in the order of their
// posting.
class SerialThread {
 public:
  SerialThread() : thread_([this] { Loop(); }) {}
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;
  // Carries out all posted tasks first.
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
