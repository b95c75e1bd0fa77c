// The part of JobStates that begins, stops and ends attempts.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/jobs/job_states.h"

namespace wan::server {
namespace {

constexpr char kCallerLostInStop[] = "caller went away (server stopped)";

// Returns the header of the report of an attempt that has just begun.
wan::v1::JobReport HeaderOf(const wan::v1::Job& job, const DeviceDescription& device) {
  wan::v1::JobReport header;
  header.set_name(absl::StrCat(job.name(), "/report"));
  header.set_job(job.name());
  header.set_attempt(job.attempt());
  header.set_model(job.request().model());
  header.set_group(job.group());
  header.set_device(device.device);
  header.set_dtype(device.dtype);
  return header;
}

}  // namespace

std::optional<Attempt> JobStates::BeginNext(int group) {
  std::optional<Attempt> attempt;
  {
    const LiveJobs::Lock lock(live_);
    if (!live_.refusal.ok() || !parts_.groups.Serves(group)) return std::nullopt;
    live_.queue.RefreshUse();
    const std::optional<QueueEntry> entry = parts_.order.TakeFor(group);
    if (!entry.has_value()) return std::nullopt;
    LiveJob& live = live_.jobs.at(entry->job);
    wan::v1::Job& job = live.stored.job;
    job.set_attempt(job.attempt() + 1);
    job.set_group(group);
    *job.mutable_start_time() = ToProto(live_.clock.Now());
    live.began = live_.steady.Now();
    EnterAttempt(job);
    live.trace = AttemptTrace();
    live.report = std::make_shared<ReportSink>(HeaderOf(job, parts_.groups.device(group)));
    live.stop = std::stop_source();
    live.stop_cause.reset();
    live.requeue.reset();
    live.preempted = false;
    live.successor.clear();
    live.head_start = absl::ZeroDuration();
    live.progress_time = absl::InfinitePast();
    live.estimate = parts_.outlook.Estimate(job.request().model(), live.work.get());
    live_.account.Begin(job, live.estimate.value_or(QueueSum::kUnknownUse), live.began);
    live_.queue.RefreshUse();
    live.group = group;
    live_.StateOf(group).running = job.name();
    live_.StateOf(group).latest_model = entry->model;
    SetState(live, wan::v1::JOB_STATE_RUNNING);
    parts_.ledger.Store(job);
    attempt = Attempt{job, live.queued_since, live.began - live.queued_instant,
                      live.stop.get_token(), live.report};
  }
  // Estimate again: a job may have ended since the last announcement, and the duration of an ended
  // job changes the estimates.
  parts_.outlook.AnnouncePositions(JobQueue::Front(), /*estimate=*/true);
  return attempt;
}

void JobStates::AddProgress(const std::string& job, std::vector<wan::v1::Event> events,
                            const std::optional<wan::v1::StepProgress>& progress) {
  const LiveJobs::Lock lock(live_);
  LiveJob& live = live_.jobs.at(job);
  if (progress.has_value()) {
    if (live.progress_time == absl::InfinitePast()) {
      parts_.outlook.NoteHeadStart(live, events, *progress);
    }
    *live.stored.job.mutable_progress() = *progress;
    live.progress_time = live_.steady.Now();
  }
  for (const wan::v1::Event& event : events) live.trace.Add(event);
  parts_.ledger.Append(job, std::move(events));
}

void JobStates::NoteProvenance(const std::string& job, const wan::v1::Provenance& provenance) {
  Annotate(job, [&](wan::v1::Job& row) {
    *row.mutable_provenance() = provenance;
    row.clear_omissions();
  });
}

void JobStates::Annotate(const std::string& job, const std::function<void(wan::v1::Job&)>& change) {
  const LiveJobs::Lock lock(live_);
  change(live_.jobs.at(job).stored.job);
}

LiveJob& JobStates::EndHold(const std::string& job) {
  LiveJob& live = live_.jobs.at(job);
  live_.StateOf(live.group).running.clear();
  const absl::Time now = live_.steady.Now();
  live_.account.End(live.stored.job, now - live.began, now);
  live_.queue.RefreshUse();
  return live;
}

bool JobStates::FinishIfStopped(LiveJob& live) {
  if (!live.stop_cause.has_value()) return false;
  FinishCancelled(live, *live.stop_cause, live.stop_reason);
  return true;
}

wan::v1::JobState JobStates::End(const std::string& job,
                                 const absl::StatusOr<std::vector<wan::v1::Artifact>>& result) {
  const LiveJobs::Lock lock(live_);
  LiveJob& live = EndHold(job);
  wan::v1::Job& row = live.stored.job;
  ClearAttempt(row);
  if (FinishIfStopped(live)) return row.state();
  if (result.ok()) {
    wan::v1::Event event = NewJobEvent(row.attempt());
    event.mutable_completed()->mutable_artifacts()->Assign(result->begin(), result->end());
    const absl::Duration taken = live_.steady.Now() - live.began;
    event.mutable_completed()->set_seconds(absl::ToDoubleSeconds(taken));
    parts_.outlook.LearnFrom(live, taken);
    Finish(live, wan::v1::JOB_STATE_COMPLETED, absl::OkStatus(), std::move(event));
  } else if (live.LosesCaller()) {
    FinishCancelled(live, StopCause::kCallerGone, kCallerLostInStop);
  } else if (live.requeue.has_value()) {
    Requeue(live, live.preempted ? RequeueCause::kPreempted : RequeueCause::kStopped,
            *live.requeue);
  } else {
    FinishFailed(live, result.status());
  }
  return row.state();
}

wan::v1::JobState JobStates::EndLost(const std::string& job, std::string_view reason) {
  const LiveJobs::Lock lock(live_);
  LiveJob& live = EndHold(job);
  if (FinishIfStopped(live)) return live.stored.job.state();
  if (live.stored.tied_to_caller && parts_.groups.serving() == 0) {
    FinishCancelled(live, StopCause::kCallerGone, reason);
  } else {
    RequeueLost(live, reason);
  }
  return live.stored.job.state();
}

wan::v1::JobState JobStates::Postpone(const std::string& job, std::string_view reason) {
  const LiveJobs::Lock lock(live_);
  LiveJob& live = EndHold(job);
  ClearAttempt(live.stored.job);
  if (FinishIfStopped(live)) return live.stored.job.state();
  if (live.LosesCaller()) {
    FinishCancelled(live, StopCause::kCallerGone, kCallerLostInStop);
  } else {
    Requeue(live, RequeueCause::kStorage, reason);
  }
  return live.stored.job.state();
}

void JobStates::RequeueLost(LiveJob& live, std::string_view reason) {
  wan::v1::Job& job = live.stored.job;
  if (HasOpenAttempt(job)) LoseAttempt(job, live.trace, parts_.steps_kept(job.name()));
  if (LostWithoutProgress(job) < parts_.max_attempts) {
    return Requeue(live, RequeueCause::kLost, reason);
  }
  FinishFailed(live, AttemptsExhaustedError(job));
}

std::vector<std::string> JobStates::Close(const absl::Status& refusal) {
  const LiveJobs::Lock lock(live_);
  live_.refusal = refusal;
  live_.closed = true;
  std::vector<std::string> running;
  for (const GroupWork& group : live_.groups) {
    if (group.running.empty()) continue;
    running.push_back(group.running);
    wan::v1::Job& job = live_.jobs.at(group.running).stored.job;
    ClearAttempt(job);
    parts_.ledger.Store(job);
  }
  return running;
}

void JobStates::Reopen() {
  const LiveJobs::Lock lock(live_);
  live_.closed = false;
  live_.refusal = parts_.groups.serving() > 0 ? absl::OkStatus() : DeviceGoneError();
  for (const GroupWork& group : live_.groups) {
    if (group.running.empty()) continue;
    wan::v1::Job& job = live_.jobs.at(group.running).stored.job;
    EnterAttempt(job);
    parts_.ledger.Store(job);
  }
}

void JobStates::LoseDevice() {
  const LiveJobs::Lock lock(live_);
  if (live_.refusal.ok()) live_.refusal = DeviceGoneError();
}

bool JobStates::AwaitEnd(const std::string& job, absl::Time until) {
  const LiveJobs::Lock lock(live_);
  const auto ended = [this, &job]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex) {
    return !live_.closed || !live_.IsRunning(job);
  };
  return live_.steady.AwaitUntil(live_.mutex, absl::Condition(&ended), until);
}

void JobStates::RequeueRunning(const std::string& job, std::string_view reason) {
  std::stop_source stop(std::nostopstate);
  {
    const LiveJobs::Lock lock(live_);
    if (!live_.closed || !live_.IsRunning(job)) return;
    LiveJob& live = live_.jobs.at(job);
    live.requeue = std::string(reason);
    live.preempted = false;
    stop = live.stop;
  }
  stop.request_stop();
}

void JobStates::PreemptRunning(const std::string& job, int gap) {
  std::stop_source stop(std::nostopstate);
  {
    const LiveJobs::Lock lock(live_);
    LiveJob& live = live_.jobs.at(job);
    if (!live_.refusal.ok() || live.stop_cause.has_value() || live.requeue.has_value()) return;
    const std::optional<std::string> successor = parts_.order.SuccessorOf(live, gap);
    if (!successor.has_value()) return;
    live.requeue = absl::StrCat("preempted by ", *successor);
    live.preempted = true;
    live.successor = *successor;
    stop = live.stop;
  }
  // Call request_stop outside the lock, because it runs callbacks of the engine.
  stop.request_stop();
}

bool JobStates::WillRunAgain(const std::string& job) const {
  absl::MutexLock lock(&live_.mutex);
  const LiveJob& live = live_.jobs.at(job);
  return live.requeue.has_value() && !live.stop_cause.has_value() && !live.LosesCaller();
}

}  // namespace wan::server
