// What the table does at its start: it takes over the jobs that an earlier process left.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "server/conversion/convert.h"
#include "server/jobs/job_table.h"
#include "server/quota/past_use.h"

namespace wan::server {
namespace {

constexpr char kRestarted[] = "server restarted while the job was running";
constexpr char kCallerLostInRestart[] = "caller went away (server restarted)";

// Most jobs that are taken over without releasing the lock.
constexpr size_t kJobsAtOnce = 64;

// Number of stored events that are read at once.
constexpr int kPageEvents = 256;

}  // namespace

absl::Status JobTable::Recover() {
  absl::StatusOr<std::vector<StoredJob>> unfinished = parts_.store.Unfinished();
  if (!unfinished.ok()) return unfinished.status();
  std::unordered_map<std::string, AttemptTrace> lost;
  for (const StoredJob& stored : *unfinished) {
    if (stored.job.state() != wan::v1::JOB_STATE_RUNNING) continue;
    lost.emplace(stored.job.name(), StoredTrace(stored.job));
  }
  const absl::Time long_ago = parts_.clock.Now() - UsageAccount::kMemory;
  const absl::Duration shift = steady_.Now() - parts_.clock.Now();
  absl::Status recalled = VisitUseSince(parts_.store, long_ago, [&](const PrincipalUse& use) {
    const Lock lock(*this);
    account_.RecallEnded(use.owner, use.held, use.until + shift);
  });
  if (!recalled.ok()) return recalled;
  for (size_t done = 0; done < unfinished->size();) {
    const Lock lock(*this);
    const size_t end = std::min(unfinished->size(), done + kJobsAtOnce);
    for (; done < end; ++done) {
      StoredJob& stored = (*unfinished)[done];
      const std::string name = stored.job.name();
      RecoverOne(std::move(stored), lost[name], shift);
    }
    queue_.RefreshUse();
  }
  return parts_.log.Flush();
}

void JobTable::RecoverOne(StoredJob stored, AttemptTrace trace, absl::Duration shift) {
  const std::string name = stored.job.name();
  parts_.log.Open(name, stored.job.last_sequence());
  parts_.models.AddRecoveredJob(stored.job.request().model());
  LiveJob& live = live_[name];
  live.age = next_age_++;
  live.queued_since = ToTime(stored.job.create_time());
  // The clock may have been set back since.
  live.queued_instant = std::min(live.queued_since + shift, steady_.Now());
  live.trace = std::move(trace);
  live.stored = std::move(stored);
  account_.Add(live.stored.job, std::nullopt);
  account_.RecallUnended(live.stored.job, live.trace.heard(), shift);
  const wan::v1::Job& job = live.stored.job;
  for (StateListener* listener : parts_.listeners) {
    listener->OnJobState(job, wan::v1::JOB_STATE_UNSPECIFIED);
  }
  if (job.has_error()) {
    FinishCancelled(live, StopCause::kCancelled, std::string(job.error().message()));
  } else if (live.stored.tied_to_caller) {
    FinishCancelled(live, StopCause::kCallerGone, kCallerLostInRestart);
  } else if (job.state() == wan::v1::JOB_STATE_RUNNING) {
    RequeueLost(live, kRestarted);
  } else {
    Enqueue(live);  // its position has not changed, so it needs no event
  }
  if (!IsFinal(job.state())) unplanned_[job.request().model()].push_back(name);
  if (!IsFinal(job.state()) && job.request().has_deadline()) {
    parts_.timer.Add(job.name(), ToTime(job.request().deadline()));
  }
}

std::vector<wan::v1::Job> JobTable::TakeUnplanned(const std::string& model, size_t limit) {
  std::vector<wan::v1::Job> jobs;
  const Lock lock(*this);
  std::vector<std::string>& names = unplanned_[model];
  for (; !names.empty() && jobs.size() < limit; names.pop_back()) {
    const auto live = live_.find(names.back());
    if (live == live_.end() || IsFinal(live->second.stored.job.state())) continue;
    jobs.push_back(live->second.stored.job);
  }
  return jobs;
}

void JobTable::SetWork(const std::string& job, std::shared_ptr<const PlannedWork> work) {
  const Lock lock(*this);
  LiveJob* const live = FindLive(job);
  if (live == nullptr || IsFinal(live->stored.job.state())) return;
  live->work = std::move(work);
  if (live->stored.job.state() != wan::v1::JOB_STATE_QUEUED) return;
  queue_.Remove(job);
  Enqueue(*live);  // at the same place; its position has not changed, so it needs no event
  account_.Estimate(job, Estimate(live->stored.job.request().model(), live->work.get()));
}

AttemptTrace JobTable::StoredTrace(const wan::v1::Job& job) const {
  AttemptTrace trace;
  int64_t after = 0;
  for (;;) {
    const absl::StatusOr<std::vector<wan::v1::Event>> page =
        parts_.store.Events(job.name(), after, kPageEvents);
    // Damaged events end the job's log for its watchers; the job itself can still run.
    if (!page.ok() || page->empty()) return trace;
    for (const wan::v1::Event& event : *page) {
      if (event.attempt() == job.attempt()) trace.Add(event);
    }
    after = page->back().sequence();
  }
}

}  // namespace wan::server
