// The part of JobStates that takes over the jobs of an earlier process.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "server/conversion/convert.h"
#include "server/jobs/job_states.h"

namespace wan::server {
namespace {

constexpr char kRestarted[] = "server restarted while the job was running";
constexpr char kCallerLostInRestart[] = "caller went away (server restarted)";

// Maximum number of jobs that are taken over before the lock is released for a moment.
constexpr size_t kJobsAtOnce = 64;

// Maximum number of stored events that are read at once.
constexpr int kPageEvents = 256;

// Rebuilds the trace of the job's latest attempt from the stored events that can be read.
AttemptTrace StoredTrace(JobStore& store, const wan::v1::Job& job) {
  AttemptTrace trace;
  int64_t after = 0;
  for (;;) {
    const absl::StatusOr<std::vector<wan::v1::Event>> page =
        store.Events(job.name(), after, kPageEvents);
    // Damaged events end the stream of events for the job's watchers; the job itself can still run.
    if (!page.ok() || page->empty()) return trace;
    for (const wan::v1::Event& event : *page) {
      if (event.attempt() == job.attempt()) trace.Add(event);
    }
    after = page->back().sequence();
  }
}

// Calls `visit` with the use of every job that ended at `since` or later, in any order. For removed
// jobs, calls `visit` with one sum for each principal. Returns an error if the store cannot be
// read; `visit` may have been called before the error.
absl::Status VisitUseSince(JobStore& store, absl::Time since,
                           const std::function<void(const PrincipalUse&)>& visit) {
  const absl::StatusOr<std::vector<PrincipalUse>> removed = store.UseOfRemoved(since);
  if (!removed.ok()) return removed.status();
  for (const PrincipalUse& use : *removed) visit(use);
  JobQuery query;
  query.filter.kind = JobFilter::Kind::kCompare;
  query.filter.field = JobField::kEndTime;
  query.filter.op = FilterOperator::kGreaterOrEqual;
  query.filter.number = absl::ToUnixMicros(since);
  // Begin the listing at `since`, so that older jobs are not read.
  query.order = {JobOrderField::kEndTime, /*descending=*/false};
  query.after = JobPlace{query.filter.number, 0};
  query.limit = 256;
  do {
    const absl::StatusOr<JobPage> page = store.List(query);
    if (!page.ok()) return page.status();
    for (const StoredJob& stored : page->jobs) {
      const wan::v1::Job& job = stored.job;
      visit({job.owner(), absl::Seconds(job.device_seconds()), ToTime(job.end_time())});
    }
    query.after = page->next;
  } while (query.after.has_value());
  return absl::OkStatus();
}

}  // namespace

absl::Status JobStates::Recover(JobStore& store, std::vector<StoredJob> unfinished) {
  std::unordered_map<std::string, AttemptTrace> lost;
  for (const StoredJob& stored : unfinished) {
    if (stored.job.state() != wan::v1::JOB_STATE_RUNNING) continue;
    lost.emplace(stored.job.name(), StoredTrace(store, stored.job));
  }
  const absl::Time long_ago = live_.clock.Now() - UsageAccount::kMemory;
  const absl::Duration shift = live_.steady.Now() - live_.clock.Now();
  absl::Status recalled = VisitUseSince(store, long_ago, [&](const PrincipalUse& use) {
    const LiveJobs::Lock lock(live_);
    live_.account.RecallEnded(use.owner, use.held, use.until + shift);
  });
  if (!recalled.ok()) return recalled;
  for (size_t done = 0; done < unfinished.size();) {
    const LiveJobs::Lock lock(live_);
    const size_t end = std::min(unfinished.size(), done + kJobsAtOnce);
    for (; done < end; ++done) {
      StoredJob& stored = unfinished[done];
      const std::string name = stored.job.name();
      TakeOver(std::move(stored), lost[name], shift);
    }
    live_.queue.RefreshUse();
  }
  return parts_.ledger.Flush();
}

void JobStates::TakeOver(StoredJob stored, AttemptTrace trace, absl::Duration shift) {
  parts_.ledger.TakeOver(stored.job);
  parts_.models.AddRecoveredJob(stored.job.request().model());
  LiveJob& live = live_.jobs[stored.job.name()];
  live.age = next_age_++;
  live.queued_since = ToTime(stored.job.create_time());
  // The wall clock may have been set back since the job was created.
  live.queued_instant = std::min(live.queued_since + shift, live_.steady.Now());
  live.trace = std::move(trace);
  live.stored = std::move(stored);
  live_.account.Add(live.stored.job, std::nullopt);
  live_.account.RecallUnended(live.stored.job, live.trace.heard(), shift);
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
    parts_.order.Enqueue(live);  // drop the Queued event, because the position has not changed
  }
  if (IsFinal(job.state())) return;
  parts_.order.NoteUnplanned(job);
  if (job.request().has_deadline()) {
    parts_.timer.Add(job.name(), ToTime(job.request().deadline()));
  }
}

}  // namespace wan::server
