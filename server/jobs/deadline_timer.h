// Tells when jobs run out of time.
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

// Thread-safe. One thread; times are the injected clock's.
class DeadlineTimer {
 public:
  explicit DeadlineTimer(Clock& clock);
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;
  // Stops.
  ~DeadlineTimer();

  // Begins the thread, which calls `expired` with each job whose deadline has come, with no lock
  // held. Called once.
  void Start(std::function<void(const std::string& job)> expired);

  // A job has at most one deadline; one in the past expires at once.
  void Add(const std::string& job, absl::Time deadline);
  // Nothing happens if the job has none (any more).
  void Remove(const std::string& job);

  // Once this returns, `expired` is not running and will not run again. Idempotent.
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
