// One sync of a file for all who wait for one, and the thread of a store's writes.
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
// each of them at most two syncs, however many they are. Nobody's thread waits but the object's.
class GroupSync {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // `sync` makes all durable that was written before it was called; one call at a time, on the
  // object's thread, with no lock held.
  explicit GroupSync(std::function<absl::Status()> sync);
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;
  // Syncs first for those who wait.
  ~GroupSync();

  // Calls `done` once what was written before this call is durable, or with why it may not be, on
  // the object's thread with no lock held: `done` must not block.
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
  // Carries out first what was posted.
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
