// What JobTable does with attempts: it begins them in a device group, stops them and ends them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/jobs/job_table.h"
#include "server/jobs/preemption.h"

namespace wan::server {
namespace {

constexpr char kCallerLostInStop[] = "caller went away (server stopped)";

}  // namespace

wan::v1::Event JobTable::NewEvent(int attempt) {
  wan::v1::Event event;
  event.set_attempt(std::max(attempt, 1));
  return event;
}

std::optional<Attempt> JobTable::BeginNext(int group) {
  std::optional<Attempt> attempt;
  {
    const Lock lock(*this);
    if (!refusal_.ok() || !parts_.groups.Serves(group)) return std::nullopt;
    queue_.RefreshUse();
    const std::optional<QueueEntry> entry = TakeFor(group);
    if (!entry.has_value()) return std::nullopt;
    LiveJob& live = live_.at(entry->job);
    wan::v1::Job& job = live.stored.job;
    job.set_attempt(job.attempt() + 1);
    job.set_group(group);
    *job.mutable_start_time() = ToProto(parts_.clock.Now());
    live.began = steady_.Now();
    EnterAttempt(job);
    live.trace = AttemptTrace();
    wan::v1::JobReport header;
    header.set_name(absl::StrCat(job.name(), "/report"));
    header.set_job(job.name());
    header.set_attempt(job.attempt());
    header.set_model(job.request().model());
    header.set_group(group);
    header.set_device(parts_.groups.device(group).device);
    header.set_dtype(parts_.groups.device(group).dtype);
    live.report = std::make_shared<ReportSink>(std::move(header));
    live.stop = std::stop_source();
    live.stop_cause.reset();
    live.requeue.reset();
    live.preempted = false;
    live.successor.clear();
    live.head_start = absl::ZeroDuration();
    live.progress_time = absl::InfinitePast();
    live.estimate = Estimate(job.request().model(), live.work.get());
    account_.Begin(job, live.estimate.value_or(QueueSum::kUnknownUse), live.began);
    queue_.RefreshUse();
    live.group = group;
    StateOf(group).running = job.name();
    StateOf(group).latest_model = entry->model;
    SetState(live, wan::v1::JOB_STATE_RUNNING);
    parts_.log.Append({job.name(), job, {}, std::nullopt});
    attempt = Attempt{job, live.queued_since, live.began - live.queued_instant,
                      live.stop.get_token(), live.report};
  }
  // The estimates may have changed, because a job has ended meanwhile.
  AnnouncePositions(JobQueue::Front(), /*estimate=*/true);
  return attempt;
}

std::optional<QueueEntry> JobTable::TakeFor(int group) {
  const QueueEntry* const first = queue_.First(RunnableIn(group), MayRun());
  if (first == nullptr) return std::nullopt;
  const std::string& latest = StateOf(group).latest_model;
  const int others = parts_.groups.size() - 1;
  int& passed_over = live_.at(first->job).passed_over;
  if (!latest.empty() && first->model != latest && passed_over < others &&
      RanElsewhere(group, first->model)) {
    const JobQueue::Accepts same = [&](const std::string& model) {
      return model == latest && parts_.models.IsReadyIn(model, group);
    };
    const QueueEntry* const own = queue_.First(same, MayRun());
    if (own != nullptr && own->priority == first->priority &&
        queue_.Position(own->job).value_or(0) - queue_.Position(first->job).value_or(0) <= others) {
      ++passed_over;
      return queue_.TakeFirst(same, MayRun());
    }
  }
  return queue_.TakeFirst(RunnableIn(group), MayRun());
}

std::optional<std::string> JobTable::ModelToLoad(int group) {
  const Lock lock(*this);
  if (!refusal_.ok() || !parts_.groups.Serves(group)) return std::nullopt;
  queue_.RefreshUse();
  if (queue_.First(RunnableIn(group), MayRun()) != nullptr) return std::nullopt;
  const JobQueue::Accepts loadable = [&](const std::string& model) {
    mutex_.AssertHeld();
    if (!parts_.models.MayLoadMissing(model, group)) return false;
    const std::vector<int> ready = parts_.models.ReadyIn(model);
    return std::none_of(ready.begin(), ready.end(), [&](int other) {
      mutex_.AssertHeld();
      return StateOf(other).running.empty();  // it takes the job at once
    });
  };
  const QueueEntry* const entry = queue_.First(loadable, MayRun());
  return entry == nullptr ? std::nullopt : std::optional(entry->model);
}

bool JobTable::RanElsewhere(int group, const std::string& model) const {
  for (int other = 0; other < parts_.groups.size(); ++other) {
    if (other != group && StateOf(other).latest_model == model && parts_.groups.Serves(other) &&
        parts_.models.IsReadyIn(model, other)) {
      return true;
    }
  }
  return false;
}

JobQueue::Accepts JobTable::RunnableIn(int group) const {
  return [this, group](const std::string& model) { return parts_.models.IsReadyIn(model, group); };
}

JobQueue::Accepts JobTable::MayRun() const {
  return [this](const std::string& owner) {
    mutex_.AssertHeld();
    return account_.MayRun(parts_.quotas.Of(owner), owner);
  };
}

void JobTable::AddProgress(const std::string& job, std::vector<wan::v1::Event> events,
                           const std::optional<wan::v1::StepProgress>& progress) {
  const Lock lock(*this);
  LiveJob& live = live_.at(job);
  if (progress.has_value()) {
    if (live.progress_time == absl::InfinitePast()) NoteHeadStart(live, events, *progress);
    *live.stored.job.mutable_progress() = *progress;
    live.progress_time = steady_.Now();
  }
  for (const wan::v1::Event& event : events) live.trace.Add(event);
  parts_.log.Append({job, std::nullopt, std::move(events), std::nullopt});
}

void JobTable::Annotate(const std::string& job, const std::function<void(wan::v1::Job&)>& change) {
  const Lock lock(*this);
  change(live_.at(job).stored.job);
}

wan::v1::JobState JobTable::End(const std::string& job,
                                const absl::StatusOr<std::vector<wan::v1::Artifact>>& result) {
  const Lock lock(*this);
  LiveJob& live = live_.at(job);
  EndHold(live);
  wan::v1::Job& row = live.stored.job;
  ClearAttempt(row);
  if (live.stop_cause.has_value()) {
    FinishCancelled(live, *live.stop_cause, live.stop_reason);
  } else if (result.ok()) {
    wan::v1::Event event = NewEvent(row.attempt());
    event.mutable_completed()->mutable_artifacts()->Assign(result->begin(), result->end());
    const absl::Duration taken = steady_.Now() - live.began;
    event.mutable_completed()->set_seconds(absl::ToDoubleSeconds(taken));
    LearnFrom(live, taken);
    Finish(live, wan::v1::JOB_STATE_COMPLETED, absl::OkStatus(), std::move(event));
  } else if (live.requeue.has_value() && live.stored.tied_to_caller && !live.preempted) {
    FinishCancelled(live, StopCause::kCallerGone, kCallerLostInStop);
  } else if (live.requeue.has_value()) {
    RequeueAsAsked(live);
  } else {
    wan::v1::Event event = NewEvent(row.attempt());
    *event.mutable_failed()->mutable_status() = ToProto(result.status());
    Finish(live, wan::v1::JOB_STATE_FAILED, result.status(), std::move(event));
  }
  return row.state();
}

wan::v1::JobState JobTable::EndLost(const std::string& job, std::string_view reason) {
  const Lock lock(*this);
  LiveJob& live = live_.at(job);
  EndHold(live);
  if (live.stop_cause.has_value()) {
    FinishCancelled(live, *live.stop_cause, live.stop_reason);
  } else if (live.stored.tied_to_caller && parts_.groups.serving() == 0) {
    FinishCancelled(live, StopCause::kCallerGone, reason);
  } else {
    RequeueLost(live, reason);
  }
  return live.stored.job.state();
}

wan::v1::JobState JobTable::Postpone(const std::string& job, std::string_view reason) {
  const Lock lock(*this);
  LiveJob& live = live_.at(job);
  EndHold(live);
  ClearAttempt(live.stored.job);
  if (live.stop_cause.has_value()) {
    FinishCancelled(live, *live.stop_cause, live.stop_reason);
  } else if (live.requeue.has_value() && live.stored.tied_to_caller && !live.preempted) {
    FinishCancelled(live, StopCause::kCallerGone, kCallerLostInStop);
  } else {
    Requeue(live, RequeueCause::kStorage, reason);
  }
  return live.stored.job.state();
}

std::vector<std::string> JobTable::Close(const absl::Status& refusal) {
  const Lock lock(*this);
  refusal_ = refusal;
  closed_ = true;
  std::vector<std::string> running;
  for (const GroupState& group : groups_) {
    if (group.running.empty()) continue;
    running.push_back(group.running);
    wan::v1::Job& job = live_.at(group.running).stored.job;
    ClearAttempt(job);
    parts_.log.Append({job.name(), job, {}, std::nullopt});
  }
  return running;
}

void JobTable::Reopen() {
  const Lock lock(*this);
  closed_ = false;
  refusal_ = parts_.groups.serving() > 0 ? absl::OkStatus() : DeviceGoneError();
  for (const GroupState& group : groups_) {
    if (group.running.empty()) continue;
    wan::v1::Job& job = live_.at(group.running).stored.job;
    EnterAttempt(job);
    parts_.log.Append({job.name(), job, {}, std::nullopt});
  }
}

void JobTable::LoseDevice() {
  const Lock lock(*this);
  if (refusal_.ok()) refusal_ = DeviceGoneError();
}

bool JobTable::AwaitEnd(const std::string& job, absl::Time until) {
  const Lock lock(*this);
  const auto ended = [this, &job]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !closed_ || !IsRunning(job);
  };
  return steady_.AwaitUntil(mutex_, absl::Condition(&ended), until);
}

bool JobTable::IsRunning(const std::string& job) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [&](const GroupState& group) { return group.running == job; });
}

void JobTable::RequeueRunning(const std::string& job, std::string_view reason) {
  std::stop_source stop(std::nostopstate);
  {
    const Lock lock(*this);
    if (!closed_ || !IsRunning(job)) return;
    LiveJob& live = live_.at(job);
    live.requeue = std::string(reason);
    live.preempted = false;
    stop = live.stop;
  }
  stop.request_stop();
}

void JobTable::PreemptRunning(const std::string& job, int gap) {
  std::stop_source stop(std::nostopstate);
  {
    const Lock lock(*this);
    LiveJob& live = live_.at(job);
    const wan::v1::Job& row = live.stored.job;
    // Behind the last step only decoding is left, which a savepoint does not shorten.
    if (gap == 0 || !refusal_.ok() || live.stop_cause.has_value() || live.requeue.has_value() ||
        row.progress().step() == row.progress().total()) {
      return;
    }
    const QueueEntry* const first = queue_.First(RunnableIn(live.group), MayRun());
    if (first == nullptr || !IsNextToGiveWay(live, *first) ||
        !PreemptionPays({row.request().priority(), first->priority, TimeLeft(live),
                         SwitchCost(live, first->model)},
                        gap)) {
      return;
    }
    live.requeue = absl::StrCat("preempted by ", first->job);
    live.preempted = true;
    live.successor = first->job;
    stop = live.stop;
  }
  // Without the lock, because it runs callbacks of the engine.
  stop.request_stop();
}

bool JobTable::IsNextToGiveWay(const LiveJob& live, const QueueEntry& waiting) const {
  for (int group = 0; group < parts_.groups.size(); ++group) {
    const std::string& running = StateOf(group).running;
    if (group == live.group) continue;
    if (running.empty()) {
      // It takes the job at once.
      if (parts_.groups.Serves(group) && parts_.models.IsReadyIn(waiting.model, group)) {
        return false;
      }
      continue;
    }
    const LiveJob& other = live_.at(running);
    if (other.preempted && other.successor == waiting.job) return false;
    if (other.requeue.has_value() || other.stop_cause.has_value()) continue;
    if (parts_.models.IsReadyIn(waiting.model, group) &&
        other.stored.job.request().priority() < live.stored.job.request().priority()) {
      return false;
    }
  }
  return true;
}

bool JobTable::WillRunAgain(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const LiveJob& live = live_.at(job);
  return live.requeue.has_value() && !live.stop_cause.has_value() &&
         (live.preempted || !live.stored.tied_to_caller);
}

void JobTable::EndHold(LiveJob& live) {
  StateOf(live.group).running.clear();
  const absl::Time now = steady_.Now();
  account_.End(live.stored.job, now - live.began, now);
  queue_.RefreshUse();
}

void JobTable::RequeueLost(LiveJob& live, std::string_view reason) {
  wan::v1::Job& job = live.stored.job;
  if (HasOpenAttempt(job)) LoseAttempt(job, live.trace, parts_.steps_kept(job.name()));
  if (LostWithoutProgress(job) < parts_.max_attempts) {
    return Requeue(live, RequeueCause::kLost, reason);
  }
  const absl::Status error = AttemptsExhaustedError(job);
  wan::v1::Event event = NewEvent(job.attempt());
  *event.mutable_failed()->mutable_status() = ToProto(error);
  Finish(live, wan::v1::JOB_STATE_FAILED, error, std::move(event));
}

void JobTable::RequeueAsAsked(LiveJob& live) {
  Requeue(live, live.preempted ? RequeueCause::kPreempted : RequeueCause::kStopped, *live.requeue);
}

}  // namespace wan::server
