// Calls back when the deadline of a job has come.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Thread-safe. A thread of the object waits on the injected clock.
class DeadlineTimer {
 public:
  explicit DeadlineTimer(Clock& clock);
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;
  // Calls Stop if nobody has.
  ~DeadlineTimer();

  // Call Start at most once. Starts the thread, which calls `expired` with each job whose deadline
  // has passed. No lock is held during the call, so `expired` may call the timer.
  void Start(std::function<void(const std::string& job)> expired);

  // Sets the job's deadline; does nothing if the job has one already. A deadline in the past passes
  // at once.
  void Add(const std::string& job, absl::Time deadline);
  // Removes the job's deadline; does nothing if the job has none or it has passed.
  void Remove(const std::string& job);

  // Waits for a running call of `expired` and ends the thread; `expired` is not called again. Do
  // not call Stop from `expired`. Later calls do nothing.
  void Stop();

 private:
  void Loop(const std::function<void(const std::string& job)>& expired);

  Clock& clock_;
  absl::Mutex mutex_;
  std::set<std::pair<absl::Time, std::string>> deadlines_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, absl::Time> by_job_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace wan::server
