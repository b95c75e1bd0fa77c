#include "server/jobs/live_jobs.h"

#include <algorithm>

namespace wan::server {

wan::v1::Job LiveJob::Shown() const {
  if (before_end.has_value()) return *before_end;
  wan::v1::Job job = stored.job;
  ClearAttempt(job);  // callers do not see the entry of a running attempt (server/jobs/attempts.h)
  job.clear_error();  // callers do not see the error that marks a job to be cancelled
  return job;
}

std::optional<wan::v1::JobReport> LiveJob::ReportNow() const {
  return report == nullptr ? std::nullopt : std::optional(report->Snapshot(stored.job));
}

LiveJobs::Lock::Lock(const LiveJobs& live) : live_(live) {
  live_.mutex.Lock();
  live_.looked_at_before = live_.queue.looked_at();
}

LiveJobs::Lock::~Lock() {
  live_.most_entries_at_once =
      std::max(live_.most_entries_at_once, live_.queue.looked_at() - live_.looked_at_before);
  live_.mutex.Unlock();
}

LiveJobs::LiveJobs(Clock& clock_in, int queue_capacity, int group_count)
    : clock(clock_in),
      steady(clock_in.Steady()),
      queue(queue_capacity,
            [this](const std::string& owner) {
              mutex.AssertHeld();
              return account.RecentUseOf(owner, steady.Now());
            }),
      groups(static_cast<size_t>(group_count)) {}

LiveJob* LiveJobs::Find(const std::string& job) {
  const auto found = jobs.find(job);
  return found == jobs.end() || found->second.accepting ? nullptr : &found->second;
}

bool LiveJobs::IsRunning(const std::string& job) const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const GroupWork& group) { return group.running == job; });
}

}  // namespace wan::server
