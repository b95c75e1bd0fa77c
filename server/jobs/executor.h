// The thread of a device group that calls its engine.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Runs posted tasks (model loads, unloads, warm-ups) in the order in which they were posted and,
// while there is none, jobs. Thread-safe.
class Executor {
 public:
  // Takes and runs one job; returns false if no job can run now. Called on the executor's thread.
  using RunNextJob = std::function<bool()>;

  // The executor calls exactly one of the two: `run` when it is the task's turn, or `dropped` if it
  // stops before that.
  struct Task {
    std::function<void()> run;
    std::function<void()> dropped;
  };

  Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Calls Stop().
  ~Executor();

  // Call once. Starts the thread.
  void Start(RunNextJob run_next_job);

  // Runs the task before the next job. After Halt or Stop, drops it at once on the caller's thread.
  void Post(Task task);

  // Call when a job may have become runnable: one was queued, or a model became ready.
  void Wake();

  // Drops all tasks, now and later, and begins no other job. Does not wait, so the running task or
  // job may call it.
  void Halt();

  // Halts, waits for the running task or job, and joins the thread. Do not call it on the
  // executor's own thread. Idempotent.
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
