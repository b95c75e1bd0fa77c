// Lets all waiting callers share one sync of a file, and runs a store's writes on one thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Thread-safe. Calls that arrive while a sync runs share the next sync, so each waits for at most
// two syncs, however many calls there are. Only the object's own thread blocks.
class GroupSync {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // `sync` makes all earlier writes durable. The object calls `sync` on its own thread, one call at
  // a time, with no lock held.
  explicit GroupSync(std::function<absl::Status()> sync);
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;
  // If callers are waiting, syncs once more for them.
  ~GroupSync();

  // Calls `done` with OK once all earlier writes are durable, or with the error of the sync. Calls
  // `done` on the object's thread with no lock held; `done` must not block.
  void Await(Done done);

  // If no sync runs or is waited for, syncs on the calling thread and returns the result. Otherwise
  // returns nullopt at once; then call Await.
  std::optional<absl::Status> TrySync();

  // Number of calls that wait for a sync that has not begun.
  int waiting() const;

 private:
  void Loop();

  const std::function<absl::Status()> sync_;
  mutable absl::Mutex mutex_;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  bool syncing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // declared last: it uses the members above
};

// Runs posted tasks one by one, in order, on a separate thread. Thread-safe.
class SerialThread {
 public:
  SerialThread() : thread_([this] { Loop(); }) {}
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;
  // Runs all posted tasks before the thread ends.
  ~SerialThread();

  void Post(std::function<void()> task);

  // If no task runs or waits, runs `task` on the calling thread, before all tasks posted meanwhile,
  // and returns true. Otherwise returns false at once; then call Post.
  bool TryRun(absl::FunctionRef<void()> task);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // declared last: it uses the members above
};

}  // namespace wan::server
