// The one thread of a device group that calls its engine.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Runs posted tasks (model loads, unloads, warm-ups) in their order and, when there is none, jobs.
// Thread-safe.
class Executor {
 public:
  // Takes and runs one job; false if none can run now. Called on the executor's thread only.
  using RunNextJob = std::function<bool()>;

  // What a stopping executor has not begun is told so with `dropped`.
  struct Task {
    std::function<void()> run;
    std::function<void()> dropped;
  };

  Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Stops.
  ~Executor();

  // Begins the thread. Called once.
  void Start(RunNextJob run_next_job);

  // Runs the task before the next job. After Stop it is dropped at once.
  void Post(Task task);

  // Looks for jobs again: one came, or a model became ready.
  void Wake();

  // Begins no other task or job; what was posted is dropped, also later. Unlike Stop it waits for
  // nothing, so that what runs may call it.
  void Halt();

  // Halts, waits for the task or job that runs, and joins the thread. Idempotent. Not for the
  // executor's own thread.
  void Stop();

 private:
  void Loop(const RunNextJob& run_next_job);

  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Mutex join_mutex_;  // one joiner at a time
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace wan::server
