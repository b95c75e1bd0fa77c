#include "server/jobs/deadline_timer.h"

namespace wan::server {

DeadlineTimer::DeadlineTimer(Clock& clock) : clock_(clock) {}

DeadlineTimer::~DeadlineTimer() { Stop(); }

void DeadlineTimer::Start(std::function<void(const std::string& job)> expired) {
  thread_ = std::thread([this, expired = std::move(expired)] { Loop(expired); });
}

void DeadlineTimer::Add(const std::string& job, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!by_job_.emplace(job, deadline).second) return;
  deadlines_.emplace(deadline, job);
  changed_ = true;
}

void DeadlineTimer::Remove(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_job_.find(job);
  if (found == by_job_.end()) return;
  deadlines_.erase({found->second, job});
  by_job_.erase(found);
}

void DeadlineTimer::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void DeadlineTimer::Loop(const std::function<void(const std::string& job)>& expired) {
  for (;;) {
    std::string job;
    {
      absl::MutexLock lock(&mutex_);
      changed_ = false;
      const auto work = [this]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return changed_ || stop_; };
      clock_.AwaitUntil(mutex_, absl::Condition(&work),
                        deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.begin()->first);
      if (stop_) return;
      if (deadlines_.empty() || deadlines_.begin()->first > clock_.Now()) continue;
      job = deadlines_.begin()->second;
      by_job_.erase(job);
      deadlines_.erase(deadlines_.begin());
    }
    expired(job);
  }
}

}  // namespace wan::server
