#include "server/jobs/callers.h"

#include <utility>

namespace wan::server {

Callers::Callers(Clock& clock, absl::Duration grace,
                 std::function<void(const std::string& job)> lost)
    : clock_(clock.Steady()), grace_(grace), timer_(clock_) {
  timer_.Start([this, lost = std::move(lost)](const std::string& job) {
    if (Forget(job)) lost(job);
  });
}

void Callers::Join(const std::string& job) {
  timer_.Remove(job);
  absl::MutexLock lock(&mutex_);
  ++callers_[job];
}

bool Callers::Leave(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const auto found = callers_.find(job);
  return found != callers_.end() && --found->second == 0;
}

void Callers::Await(const std::string& job) { timer_.Add(job, clock_.Now() + grace_); }

bool Callers::Forget(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const auto found = callers_.find(job);
  if (found == callers_.end() || found->second > 0) return false;
  callers_.erase(found);
  return true;
}

}  // namespace wan::server
