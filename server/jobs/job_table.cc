#include "server/jobs/job_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// Positions below this are announced one by one, others when they halve or double. So a queue of N
// jobs costs each job about log N events and not N.
constexpr int kNearPosition = 4;

// Most entries of the queue that are visited without releasing the lock.
constexpr int kEntriesAtOnce = 64;

absl::Status CancelledStatus(StopCause cause, std::string_view reason) {
  const absl::StatusCode code = cause == StopCause::kDeadline ? absl::StatusCode::kDeadlineExceeded
                                                              : absl::StatusCode::kCancelled;
  return absl::Status(code, absl::string_view(reason.data(), reason.size()));
}

bool WorthAnnouncing(int before, int now) {
  if (before == now) return false;
  return std::min(before, now) < kNearPosition || now <= before / 2 || now >= before * 2;
}

// So that the reservation survives a restart, after which nothing is known of the work.
void NoteReserved(wan::v1::Job& job, std::optional<absl::Duration> estimate) {
  if (estimate.has_value()) job.set_reserved_device_seconds(absl::ToDoubleSeconds(*estimate));
}

}  // namespace

JobTable::Lock::Lock(const JobTable& table) : table_(table) {
  table_.mutex_.Lock();
  table_.looked_at_before_ = table_.queue_.looked_at();
}

JobTable::Lock::~Lock() {
  table_.most_entries_at_once_ =
      std::max(table_.most_entries_at_once_, table_.queue_.looked_at() - table_.looked_at_before_);
  table_.mutex_.Unlock();
}

JobTable::JobTable(Parts parts)
    : parts_(std::move(parts)),
      steady_(parts_.clock.Steady()),
      queue_(parts_.queue_capacity,
             [this](const std::string& owner) {
               mutex_.AssertHeld();
               return account_.RecentUseOf(owner, steady_.Now());
             }),
      groups_(static_cast<size_t>(parts_.groups.size())) {}

void JobTable::Accept(std::vector<NewJob> jobs, Accepted done) {
  absl::StatusOr<std::vector<JobAddition>> reserved = Reserve(std::move(jobs));
  if (!reserved.ok()) {
    done(reserved.status());
    return;
  }
  const auto additions = std::make_shared<const std::vector<JobAddition>>(*std::move(reserved));
  parts_.store.InsertAll(*additions,
                         [this, additions, done = std::move(done)](const absl::Status& inserted) {
                           done(Settle(*additions, inserted));
                         });
}

absl::StatusOr<std::vector<JobAddition>> JobTable::Reserve(std::vector<NewJob> jobs) {
  std::vector<JobAddition> additions;
  const Lock lock(*this);
  if (!refusal_.ok()) return refusal_;
  if (queue_.size() + static_cast<int>(jobs.size()) > queue_.capacity()) {
    return QueueFullError(queue_.capacity(), RetryDelay());
  }
  if (absl::Status refused = CheckQuota(jobs); !refused.ok()) return refused;
  const absl::Time now = parts_.clock.Now();
  for (NewJob& job : jobs) {
    const std::string name = job.stored.job.name();
    const std::optional<absl::Duration> estimate =
        Estimate(job.stored.job.request().model(), job.work.get());
    NoteReserved(job.stored.job, estimate);
    job.stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    *job.stored.job.mutable_create_time() = ToProto(now);
    LiveJob& live = live_[name];
    live.accepting = true;
    live.age = next_age_++;
    live.queued_since = now;
    live.queued_instant = steady_.Now();
    live.work = std::move(job.work);
    live.stored = job.stored;
    account_.Add(live.stored.job, estimate);
    wan::v1::Event event = Enqueue(live);
    event.set_job(name);
    event.set_sequence(1);
    *event.mutable_time() = ToProto(now);
    parts_.log.Open(name, event.sequence());
    additions.push_back({std::move(job.stored), std::move(job.image), {std::move(event)}});
  }
  return additions;
}

absl::StatusOr<std::vector<wan::v1::Job>> JobTable::Settle(
    const std::vector<JobAddition>& additions, const absl::Status& inserted) {
  std::optional<JobQueue::Place> behind;
  int reach = 0;
  std::vector<wan::v1::Job> accepted;
  {
    const Lock lock(*this);
    for (const JobAddition& addition : additions) {
      const wan::v1::Job& job = addition.job.job;
      if (!inserted.ok()) {
        queue_.Remove(job.name());
        account_.Remove(job.name());
        parts_.log.Forget(job.name());
        live_.erase(job.name());
        continue;
      }
      LiveJob& live = live_.at(job.name());
      live.accepting = false;
      queue_.MarkReady(job.name());
      reach = std::max(reach, ReachOfChange());
      const std::optional<JobQueue::Place> place = queue_.PlaceOf(job.name());
      if (!behind.has_value() || (place.has_value() && *place < *behind)) behind = place;
      if (job.request().has_deadline()) {
        parts_.timer.Add(job.name(), ToTime(job.request().deadline()));
      }
      for (StateListener* listener : parts_.listeners) {
        listener->OnJobState(live.stored.job, wan::v1::JOB_STATE_UNSPECIFIED);
      }
      accepted.push_back(View(live));
    }
    if (closed_) behind.reset();  // whoever stops would wait for these events
  }
  if (!inserted.ok()) return inserted;
  if (behind.has_value()) AnnouncePositions(*behind, /*estimate=*/false, reach);
  return accepted;
}

std::optional<wan::v1::Job> JobTable::Update(
    const std::string& job, const std::function<void(wan::v1::GenerationRequest&)>& change) {
  wan::v1::Job updated;
  bool queued = false;
  {
    const Lock lock(*this);
    LiveJob* const live = FindLive(job);
    if (live == nullptr || IsFinal(live->stored.job.state())) return std::nullopt;
    wan::v1::Job& row = live->stored.job;
    queued = row.state() == wan::v1::JOB_STATE_QUEUED;
    if (queued) queue_.Remove(job);
    change(*row.mutable_request());
    JobChange stored{job, row, {}, std::nullopt, /*labels_changed=*/true};
    if (queued) stored.events.push_back(Enqueue(*live));
    parts_.timer.Remove(job);
    if (row.request().has_deadline()) parts_.timer.Add(job, ToTime(row.request().deadline()));
    parts_.log.Append(std::move(stored));
    updated = View(*live);
  }
  if (queued) AnnouncePositions(JobQueue::Front(), /*estimate=*/false);
  return updated;
}

void JobTable::Cancel(const std::string& job, StopCause cause, std::string_view reason) {
  std::stop_source stop(std::nostopstate);
  std::optional<JobQueue::Place> behind;
  int reach = 0;
  {
    const Lock lock(*this);
    LiveJob* const live = FindLive(job);
    if (live == nullptr) return;
    if (live->stored.job.state() == wan::v1::JOB_STATE_QUEUED) {
      behind = queue_.PlaceOf(job);
      reach = ReachOfChange();
      queue_.Remove(job);
      FinishCancelled(*live, cause, reason);
    } else if (live->stored.job.state() == wan::v1::JOB_STATE_RUNNING &&
               !live->stop_cause.has_value()) {
      live->stop_cause = cause;
      live->stop_reason = std::string(reason);
      stop = live->stop;
      if (cause == StopCause::kCancelled) {
        // A running job with an error is one that is to be cancelled (RecoverOne).
        wan::v1::Job& row = live->stored.job;
        *row.mutable_error() = ToProto(CancelledStatus(cause, reason));
        parts_.log.Append({job, row, {}, std::nullopt});
      }
    }
  }
  // Without the lock, because it runs callbacks of the engine.
  stop.request_stop();
  if (behind.has_value()) AnnouncePositions(*behind, /*estimate=*/false, reach);
}

std::optional<wan::v1::Job> JobTable::Find(const std::string& job) const {
  const Lock lock(*this);
  const LiveJob* const live = FindLive(job);
  if (live == nullptr) return std::nullopt;
  return View(*live);
}

std::optional<wan::v1::JobReport> JobTable::FindReport(const std::string& job) const {
  const Lock lock(*this);
  const LiveJob* const live = FindLive(job);
  if (live == nullptr || live->report == nullptr) return std::nullopt;
  return live->report->Snapshot(ShownOf(*live));
}

JobStats JobTable::Stats() const {
  const Lock lock(*this);
  JobStats stats;
  stats.jobs_by_state = ended_;
  stats.queue_capacity = queue_.capacity();
  stats.queued_total = queue_.size();
  for (const GroupState& group : groups_) stats.running_total += group.running.empty() ? 0 : 1;
  stats.jobs_by_state[wan::v1::JOB_STATE_QUEUED] = stats.queued_total;
  stats.jobs_by_state[wan::v1::JOB_STATE_RUNNING] = stats.running_total;
  for (const auto& [model, sum] : queue_.models()) {
    stats.queued[model] = sum.jobs;
    stats.unestimated[model] = sum.unknown;
    if (sum.unknown == sum.jobs) continue;
    stats.queued_seconds[model] = absl::ToDoubleSeconds(sum.estimate);
  }
  AddGroups(stats);
  stats.most_entries_at_once = most_entries_at_once_;
  return stats;
}

wan::v1::Usage JobTable::UsageOf(const std::string& owner) const {
  const Lock lock(*this);
  return account_.UsageOf(owner, steady_.Now());
}

bool JobTable::Hides(const std::string& job) const {
  const Lock lock(*this);
  const auto found = live_.find(job);
  return found != live_.end() && found->second.accepting;
}

JobTable::LiveJob* JobTable::FindLive(const std::string& job) const {
  const auto found = live_.find(job);
  return found == live_.end() || found->second.accepting ? nullptr : &found->second;
}

wan::v1::Event JobTable::Enqueue(const LiveJob& live) {
  const wan::v1::Job& job = live.stored.job;
  const std::string& model = job.request().model();
  const QueueSum before =
      queue_.Add({job.name(), model, job.request().priority(), live.age, !live.accepting, live.work,
                  Expect(model, live.work.get()), /*announced_position=*/0, job.owner()});
  return QueuedEvent(job, before);
}

wan::v1::Event JobTable::QueuedEvent(const wan::v1::Job& job, const QueueSum& before) const {
  wan::v1::Event event = NewEvent(job.attempt() + 1);
  event.mutable_queued()->set_position(before.jobs);
  const std::optional<absl::Duration> eta = TimeUntil(before);
  if (eta.has_value()) {
    const TimeEstimator::Spread spread = parts_.estimator.ExpectedSpread(job.request().model());
    event.mutable_queued()->set_eta_seconds(absl::ToDoubleSeconds(*eta * spread.p50));
    event.mutable_queued()->set_eta_p90_seconds(absl::ToDoubleSeconds(*eta * spread.p90));
  }
  return event;
}

int JobTable::ReachOfChange() {
  // The n-th change reaches 4 jobs for each unit of the greatest power of two that divides n.
  ++changes_;
  const auto power = static_cast<int>(std::min<uint64_t>(changes_ & -changes_, 1 << 24));
  return std::max(kEntriesAtOnce, 4 * power);
}

void JobTable::AnnouncePositions(JobQueue::Place from, bool estimate, int reach) {
  std::optional<JobQueue::Place> next = from;
  for (; next.has_value() && reach > 0; reach -= kEntriesAtOnce) {
    const Lock lock(*this);
    next = queue_.Visit(
        *next, std::min(reach, kEntriesAtOnce), [&](QueueEntry& entry, const QueueSum& before) {
          mutex_.AssertHeld();
          if (estimate) {
            entry.estimate = Expect(entry.model, entry.work.get());
            const std::optional<absl::Duration> learned = Estimate(entry.model, entry.work.get());
            account_.Estimate(entry.job, learned);
            NoteReserved(live_.at(entry.job).stored.job, learned);
          }
          if (!entry.ready || !WorthAnnouncing(entry.announced_position, before.jobs)) return;
          entry.announced_position = before.jobs;
          wan::v1::Event event = QueuedEvent(live_.at(entry.job).stored.job, before);
          parts_.log.Append({entry.job, std::nullopt, {std::move(event)}, std::nullopt});
        });
  }
}

void JobTable::Requeue(LiveJob& live, RequeueCause cause, std::string_view reason) {
  wan::v1::Job& job = live.stored.job;
  wan::v1::Event requeued = NewEvent(job.attempt());
  requeued.mutable_requeued()->set_reason(std::string(reason));
  live.queued_since = parts_.clock.Now();
  live.queued_instant = steady_.Now();
  wan::v1::Event queued = Enqueue(live);
  job.clear_progress();
  SetState(live, wan::v1::JOB_STATE_QUEUED);
  for (StateListener* listener : parts_.listeners) listener->OnJobRequeued(job, cause);
  JobChange change{job.name(), job, {}, std::nullopt};
  change.events.push_back(std::move(requeued));
  change.events.push_back(std::move(queued));
  if (live.report != nullptr) change.report = live.report->Snapshot(job);
  parts_.log.Append(std::move(change));
}

void JobTable::FinishCancelled(LiveJob& live, StopCause cause, std::string_view reason) {
  wan::v1::Event event = NewEvent(live.stored.job.attempt());
  event.mutable_cancelled()->set_reason(std::string(reason));
  Finish(live, wan::v1::JOB_STATE_CANCELLED, CancelledStatus(cause, reason), std::move(event));
  for (StateListener* listener : parts_.listeners) {
    listener->OnJobCancelled(live.stored.job, cause);
  }
}

void JobTable::Finish(LiveJob& live, wan::v1::JobState state, const absl::Status& error,
                      wan::v1::Event event) {
  wan::v1::Job& job = live.stored.job;
  const std::string name = job.name();
  live.before_end = ShownOf(live);
  ClearAttempt(job);
  job.clear_progress();
  job.clear_error();
  job.clear_reserved_device_seconds();
  if (event.has_completed()) *job.mutable_artifacts() = event.completed().artifacts();
  account_.Remove(name);
  *job.mutable_end_time() = ToProto(parts_.clock.Now());
  if (!error.ok()) *job.mutable_error() = ToProto(error);
  SetState(live, state);
  ++ended_[state];
  parts_.timer.Remove(name);
  parts_.models.RemoveJob(job.request().model());
  JobChange change{name, job, {}, std::nullopt};
  change.events.push_back(std::move(event));
  if (live.report != nullptr) change.report = live.report->Snapshot(job);
  parts_.log.Append(std::move(change), [this, name] {
    {
      const Lock lock(*this);
      live_.erase(name);
    }
    parts_.on_end_stored(name);
    for (StateListener* listener : parts_.listeners) listener->OnJobEndStored();
  });
}

void JobTable::SetState(LiveJob& live, wan::v1::JobState state) {
  const wan::v1::JobState previous = live.stored.job.state();
  live.stored.job.set_state(state);
  for (StateListener* listener : parts_.listeners) {
    listener->OnJobState(live.stored.job, previous);
  }
}

wan::v1::Job JobTable::ShownOf(const LiveJob& live) {
  if (live.before_end.has_value()) return *live.before_end;
  wan::v1::Job job = live.stored.job;
  ClearAttempt(job);  // callers do not see the entry of a running attempt
  job.clear_error();  // nor that it is to be cancelled
  return job;
}

wan::v1::Job JobTable::View(const LiveJob& live) const {
  wan::v1::Job job = ShownOf(live);
  const std::optional<QueueSum> before = queue_.Before(job.name());
  if (before.has_value()) job.set_queue_position(before->jobs);
  AddEta(live, before, job);
  job.set_last_sequence(parts_.log.LastSequence(job.name()));
  return job;
}

}  // namespace wan::server
