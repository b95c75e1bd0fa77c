// The part of JobStates that accepts, changes, cancels and shows jobs.
#include "server/jobs/job_states.h"

#include <algorithm>

#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

absl::Status CancelledStatus(StopCause cause, std::string_view reason) {
  const absl::StatusCode code = cause == StopCause::kDeadline ? absl::StatusCode::kDeadlineExceeded
                                                              : absl::StatusCode::kCancelled;
  return absl::Status(code, absl::string_view(reason.data(), reason.size()));
}

}  // namespace

absl::Status JobStates::CheckQueue(int jobs) const {
  if (!live_.refusal.ok()) return live_.refusal;
  if (live_.queue.size() + jobs <= live_.queue.capacity()) return absl::OkStatus();
  return QueueFullError(live_.queue.capacity(), parts_.outlook.RetryDelay());
}

absl::Status JobStates::CheckRoom(const std::string& owner, int jobs) const {
  const LiveJobs::Lock lock(live_);
  if (absl::Status full = CheckQueue(jobs); !full.ok()) return full;
  return parts_.order.CheckQuota(owner, {jobs});
}

void JobStates::Accept(std::vector<NewJob> jobs, Accepted done) {
  absl::StatusOr<std::vector<JobAddition>> reserved = Reserve(std::move(jobs));
  if (!reserved.ok()) {
    done(reserved.status());
    return;
  }
  const auto additions = std::make_shared<const std::vector<JobAddition>>(*std::move(reserved));
  parts_.ledger.Accept(additions,
                       [this, additions, done = std::move(done)](const absl::Status& inserted) {
                         done(Settle(*additions, inserted));
                       });
}

absl::StatusOr<std::vector<JobAddition>> JobStates::Reserve(std::vector<NewJob> jobs) {
  std::vector<JobAddition> additions;
  const LiveJobs::Lock lock(live_);
  if (absl::Status full = CheckQueue(static_cast<int>(jobs.size())); !full.ok()) return full;
  if (absl::Status refused = parts_.order.CheckQuota(jobs); !refused.ok()) return refused;
  const absl::Time now = live_.clock.Now();
  for (NewJob& job : jobs) {
    const std::string name = job.stored.job.name();
    const std::optional<absl::Duration> estimate =
        parts_.outlook.Estimate(job.stored.job.request().model(), job.work.get());
    NoteReserved(job.stored.job, estimate);
    job.stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    *job.stored.job.mutable_create_time() = ToProto(now);
    LiveJob& live = live_.jobs[name];
    live.accepting = true;
    live.age = next_age_++;
    live.queued_since = now;
    live.queued_instant = live_.steady.Now();
    live.work = std::move(job.work);
    live.stored = job.stored;
    live_.account.Add(live.stored.job, estimate);
    wan::v1::Event event = parts_.order.Enqueue(live);
    event.set_job(name);
    event.set_sequence(1);
    *event.mutable_time() = ToProto(now);
    additions.push_back({std::move(job.stored), std::move(job.inputs), {std::move(event)}});
  }
  return additions;
}

absl::StatusOr<std::vector<wan::v1::Job>> JobStates::Settle(
    const std::vector<JobAddition>& additions, const absl::Status& inserted) {
  std::optional<JobQueue::Place> first;  // positions from this place on have changed
  int reach = 0;
  std::vector<wan::v1::Job> accepted;
  {
    const LiveJobs::Lock lock(live_);
    for (const JobAddition& addition : additions) {
      const wan::v1::Job& job = addition.job.job;
      if (!inserted.ok()) {
        live_.queue.Remove(job.name());
        live_.account.Remove(job.name());
        live_.jobs.erase(job.name());
        continue;
      }
      LiveJob& live = live_.jobs.at(job.name());
      live.accepting = false;
      live_.queue.MarkReady(job.name());
      reach = std::max(reach, parts_.outlook.ReachOfChange());
      const std::optional<JobQueue::Place> place = live_.queue.PlaceOf(job.name());
      if (!first.has_value() || (place.has_value() && *place < *first)) first = place;
      if (job.request().has_deadline()) {
        parts_.timer.Add(job.name(), ToTime(job.request().deadline()));
      }
      for (StateListener* listener : parts_.listeners) {
        listener->OnJobState(live.stored.job, wan::v1::JOB_STATE_UNSPECIFIED);
      }
      accepted.push_back(ViewOf(live));
    }
    if (live_.closed) first.reset();  // events would delay the stop, so write none
  }
  if (!inserted.ok()) return inserted;
  if (first.has_value()) parts_.outlook.AnnouncePositions(*first, /*estimate=*/false, reach);
  return accepted;
}

std::optional<wan::v1::Job> JobStates::Update(
    const std::string& job, const std::function<void(wan::v1::GenerationRequest&)>& change) {
  wan::v1::Job updated;
  bool queued = false;
  {
    const LiveJobs::Lock lock(live_);
    LiveJob* const live = live_.Find(job);
    if (live == nullptr || IsFinal(live->stored.job.state())) return std::nullopt;
    wan::v1::Job& row = live->stored.job;
    queued = row.state() == wan::v1::JOB_STATE_QUEUED;
    if (queued) live_.queue.Remove(job);
    change(*row.mutable_request());
    std::vector<wan::v1::Event> events;
    if (queued) events.push_back(parts_.order.Enqueue(*live));
    parts_.timer.Remove(job);
    if (row.request().has_deadline()) parts_.timer.Add(job, ToTime(row.request().deadline()));
    parts_.ledger.Change(row, std::move(events));
    updated = ViewOf(*live);
  }
  if (queued) parts_.outlook.AnnouncePositions(JobQueue::Front(), /*estimate=*/false);
  return updated;
}

void JobStates::Cancel(const std::string& job, StopCause cause, std::string_view reason) {
  std::stop_source stop(std::nostopstate);
  std::optional<JobQueue::Place> place;
  int reach = 0;
  {
    const LiveJobs::Lock lock(live_);
    LiveJob* const live = live_.Find(job);
    if (live == nullptr) return;
    if (live->stored.job.state() == wan::v1::JOB_STATE_QUEUED) {
      place = live_.queue.PlaceOf(job);
      reach = parts_.outlook.ReachOfChange();
      live_.queue.Remove(job);
      FinishCancelled(*live, cause, reason);
    } else if (live->stored.job.state() == wan::v1::JOB_STATE_RUNNING &&
               !live->stop_cause.has_value()) {
      live->stop_cause = cause;
      live->stop_reason = std::string(reason);
      stop = live->stop;
      if (cause == StopCause::kCancelled) {
        // The stored error of a RUNNING job means that it must be cancelled (see TakeOver).
        wan::v1::Job& row = live->stored.job;
        *row.mutable_error() = ToProto(CancelledStatus(cause, reason));
        parts_.ledger.Store(row);
      }
    }
  }
  // Call request_stop outside the lock, because it runs callbacks of the engine.
  stop.request_stop();
  if (place.has_value()) parts_.outlook.AnnouncePositions(*place, /*estimate=*/false, reach);
}

JobStates::View JobStates::Look(const std::string& job) const {
  const LiveJobs::Lock lock(live_);
  const auto found = live_.jobs.find(job);
  if (found == live_.jobs.end()) return {};
  if (found->second.accepting) return {.job = std::nullopt, .hidden = true};
  return {.job = ViewOf(found->second), .hidden = false};
}

std::optional<wan::v1::JobReport> JobStates::FindReport(const std::string& job) const {
  const LiveJobs::Lock lock(live_);
  const LiveJob* const live = live_.Find(job);
  if (live == nullptr || live->report == nullptr) return std::nullopt;
  return live->report->Snapshot(live->Shown());
}

void JobStates::Requeue(LiveJob& live, RequeueCause cause, std::string_view reason) {
  wan::v1::Job& job = live.stored.job;
  wan::v1::Event requeued = NewJobEvent(job.attempt());
  requeued.mutable_requeued()->set_reason(std::string(reason));
  live.queued_since = live_.clock.Now();
  live.queued_instant = live_.steady.Now();
  wan::v1::Event queued = parts_.order.Enqueue(live);
  job.clear_progress();
  SetState(live, wan::v1::JOB_STATE_QUEUED);
  for (StateListener* listener : parts_.listeners) listener->OnJobRequeued(job, cause);
  std::vector<wan::v1::Event> events;
  events.push_back(std::move(requeued));
  events.push_back(std::move(queued));
  parts_.ledger.Release(job, std::move(events), live.ReportNow());
}

void JobStates::FinishFailed(LiveJob& live, const absl::Status& error) {
  wan::v1::Event event = NewJobEvent(live.stored.job.attempt());
  *event.mutable_failed()->mutable_status() = ToProto(error);
  Finish(live, wan::v1::JOB_STATE_FAILED, error, std::move(event));
}

void JobStates::FinishCancelled(LiveJob& live, StopCause cause, std::string_view reason) {
  wan::v1::Event event = NewJobEvent(live.stored.job.attempt());
  event.mutable_cancelled()->set_reason(std::string(reason));
  Finish(live, wan::v1::JOB_STATE_CANCELLED, CancelledStatus(cause, reason), std::move(event));
  for (StateListener* listener : parts_.listeners) {
    listener->OnJobCancelled(live.stored.job, cause);
  }
}

void JobStates::Finish(LiveJob& live, wan::v1::JobState state, const absl::Status& error,
                       wan::v1::Event event) {
  wan::v1::Job& job = live.stored.job;
  const std::string name = job.name();
  live.before_end = live.Shown();
  ClearAttempt(job);
  job.clear_progress();
  job.clear_error();
  job.clear_reserved_device_seconds();
  if (event.has_completed()) *job.mutable_artifacts() = event.completed().artifacts();
  live_.account.Remove(name);
  *job.mutable_end_time() = ToProto(live_.clock.Now());
  if (!error.ok()) *job.mutable_error() = ToProto(error);
  SetState(live, state);
  ++live_.ended[state];
  parts_.timer.Remove(name);
  parts_.models.RemoveJob(job.request().model());
  parts_.ledger.Finish(job, std::move(event), live.ReportNow(), [this, name] {
    {
      const LiveJobs::Lock lock(live_);
      live_.jobs.erase(name);
    }
    parts_.on_end_stored(name);
    for (StateListener* listener : parts_.listeners) listener->OnJobEndStored();
  });
}

void JobStates::SetState(LiveJob& live, wan::v1::JobState state) {
  const wan::v1::JobState previous = live.stored.job.state();
  live.stored.job.set_state(state);
  for (StateListener* listener : parts_.listeners) {
    listener->OnJobState(live.stored.job, previous);
  }
}

wan::v1::Job JobStates::ViewOf(const LiveJob& live) const {
  wan::v1::Job job = live.Shown();
  parts_.outlook.AddTo(job, live);
  job.set_last_sequence(parts_.ledger.LastSequence(job.name()));
  return job;
}

}  // namespace wan::server
