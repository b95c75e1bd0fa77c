// The thread of a device group that calls its engine.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Runs posted tasks (loads, unloads and warm-ups of models) in the order in which they were posted;
// while there is none, runs jobs. Thread-safe.
class Executor {
 public:
  // Takes and runs one job; returns false if no job can run now. The executor calls this function
  // on its own thread.
  using RunNextJob = std::function<bool()>;

  // The executor calls exactly one of the two functions: `run` when it is the task's turn, or
  // `dropped` if the executor stops before.
  struct Task {
    std::function<void()> run;
    std::function<void()> dropped;
  };

  Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Calls Stop if nobody has.
  ~Executor();

  // Call Start at most once. Starts the thread.
  void Start(RunNextJob run_next_job);

  // Queues the task, which runs before the next job. After Halt or Stop, drops the task at once, on
  // the caller's thread.
  void Post(Task task);

  // Call Wake when a job may have become runnable: a job was queued, or a model became ready.
  void Wake();

  // Drops all posted tasks, now and later, and begins no other job. Does not wait, so the running
  // task or job may call Halt.
  void Halt();

  // Halts, waits for the running task or job, and joins the thread. Do not call Stop on the
  // executor's own thread. Later calls do nothing.
  void Stop();

 private:
  void Loop(const RunNextJob& run_next_job);

  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Mutex join_mutex_;  // held while joining, so that only one thread joins at a time
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace wan::server
