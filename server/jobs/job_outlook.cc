#include "server/jobs/job_outlook.h"

#include <algorithm>
#include <tuple>

#include "server/jobs/start_time.h"

namespace wan::server {
namespace {

constexpr absl::Duration kShortestRetry = absl::Seconds(1);
constexpr absl::Duration kLongestRetry = absl::Minutes(1);

// Positions below this are announced at every change, later positions when they have halved or
// doubled, so a job in a queue of N gets about log N events instead of N.
constexpr int kNearPosition = 4;

// Maximum number of entries of the queue that are visited without releasing the lock.
constexpr int kEntriesAtOnce = 64;

bool WorthAnnouncing(int before, int now) {
  if (before == now) return false;
  return std::min(before, now) < kNearPosition || now <= before / 2 || now >= before * 2;
}

std::optional<absl::Duration> SecondsOf(const std::optional<double>& seconds) {
  return seconds.has_value() ? std::optional(absl::Seconds(*seconds)) : std::nullopt;
}

// The time for which all attempts, including the running one, have worked on the job.
absl::Duration WorkedOn(const LiveJob& live, Clock& steady) {
  return steady.Now() - live.began + live.head_start;
}

}  // namespace

wan::v1::Event NewJobEvent(int attempt) {
  wan::v1::Event event;
  event.set_attempt(std::max(attempt, 1));
  return event;
}

void NoteReserved(wan::v1::Job& job, std::optional<absl::Duration> estimate) {
  if (estimate.has_value()) job.set_reserved_device_seconds(absl::ToDoubleSeconds(*estimate));
}

JobOutlook::ForNew JobOutlook::OfNew(const std::string& owner, int priority) const {
  const LiveJobs::Lock lock(live_);
  const QueueSum before = live_.queue.BeforeNew(owner, priority);
  return {before.jobs, TimeUntil(before)};
}

std::vector<RunningOutlook> JobOutlook::Running() const {
  const LiveJobs::Lock lock(live_);
  std::vector<RunningOutlook> outlooks;
  for (const GroupWork& group : live_.groups) {
    if (group.running.empty()) continue;
    const LiveJob& live = live_.jobs.at(group.running);
    const wan::v1::Job& job = live.stored.job;
    RunningOutlook& outlook = outlooks.emplace_back();
    outlook.job = job.name();
    outlook.left = TimeLeft(live);
    outlook.loading = parts_.models.LoadTime(job.request().model()).value_or(absl::ZeroDuration());
    outlook.computed_again = ComputedAgain(live);
    outlook.resumable = !live.stored.tied_to_caller;
  }
  return outlooks;
}

JobStats JobOutlook::Stats() const {
  const LiveJobs::Lock lock(live_);
  const JobQueue& queue = live_.queue;
  JobStats stats;
  stats.jobs_by_state = live_.ended;
  stats.queue_capacity = queue.capacity();
  stats.queued_total = queue.size();
  for (const GroupWork& group : live_.groups) {
    stats.running_total += group.running.empty() ? 0 : 1;
  }
  stats.jobs_by_state[wan::v1::JOB_STATE_QUEUED] = stats.queued_total;
  stats.jobs_by_state[wan::v1::JOB_STATE_RUNNING] = stats.running_total;
  for (const auto& [model, sum] : queue.models()) {
    stats.queued[model] = sum.jobs;
    stats.unestimated[model] = sum.unknown;
    if (sum.unknown == sum.jobs) continue;
    stats.queued_seconds[model] = absl::ToDoubleSeconds(sum.estimate);
  }
  AddGroups(stats);
  stats.most_entries_at_once = live_.most_entries_at_once;
  return stats;
}

void JobOutlook::AddGroups(JobStats& stats) const {
  for (int number = 0; number < parts_.groups.size(); ++number) {
    JobStats::Group& group = stats.groups.emplace_back();
    group.device = parts_.groups.device(number).device;
    group.problem = parts_.groups.ProblemOf(number);
    group.job = live_.StateOf(number).running;
    if (group.job.empty()) continue;
    const LiveJob& live = live_.jobs.at(group.job);
    wan::v1::Job job = live.stored.job;
    AddEta(live, std::nullopt, job);
    if (!job.has_eta_seconds()) continue;
    group.left_p50 = job.eta_seconds();
    group.left_p90 = job.eta_p90_seconds();
  }
}

int JobOutlook::ReachOfChange() {
  // Change number n reaches 4 * p jobs, where p is the greatest power of two that divides n.
  ++changes_;
  const auto power = static_cast<int>(std::min<uint64_t>(changes_ & -changes_, 1 << 24));
  return std::max(kEntriesAtOnce, 4 * power);
}

void JobOutlook::AnnouncePositions(JobQueue::Place from, bool estimate, int reach) {
  std::optional<JobQueue::Place> next = from;
  for (; next.has_value() && reach > 0; reach -= kEntriesAtOnce) {
    const LiveJobs::Lock lock(live_);
    next = live_.queue.Visit(
        *next, std::min(reach, kEntriesAtOnce), [&](QueueEntry& entry, const QueueSum& before) {
          live_.mutex.AssertHeld();
          if (estimate) {
            entry.estimate = Expect(entry.model, entry.work.get());
            const std::optional<absl::Duration> learned = Estimate(entry.model, entry.work.get());
            live_.account.Estimate(entry.job, learned);
            NoteReserved(live_.jobs.at(entry.job).stored.job, learned);
          }
          if (!entry.ready || !WorthAnnouncing(entry.announced_position, before.jobs)) return;
          entry.announced_position = before.jobs;
          parts_.ledger.Move(entry.job, QueuedEvent(live_.jobs.at(entry.job).stored.job, before));
        });
  }
}

wan::v1::Event JobOutlook::QueuedEvent(const wan::v1::Job& job, const QueueSum& before) const {
  wan::v1::Event event = NewJobEvent(job.attempt() + 1);
  event.mutable_queued()->set_position(before.jobs);
  const std::optional<absl::Duration> eta = TimeUntil(before);
  if (eta.has_value()) {
    const TimeEstimator::Spread spread = parts_.estimator.ExpectedSpread(job.request().model());
    event.mutable_queued()->set_eta_seconds(absl::ToDoubleSeconds(*eta * spread.p50));
    event.mutable_queued()->set_eta_p90_seconds(absl::ToDoubleSeconds(*eta * spread.p90));
  }
  return event;
}

std::optional<absl::Duration> JobOutlook::Estimate(const std::string& model,
                                                   const PlannedWork* work) const {
  if (work == nullptr) return std::nullopt;
  return SecondsOf(parts_.estimator.Seconds(model, *work));
}

std::optional<absl::Duration> JobOutlook::Expect(const std::string& model,
                                                 const PlannedWork* work) const {
  if (work == nullptr) return std::nullopt;
  return SecondsOf(parts_.estimator.Expected(model, *work));
}

std::optional<absl::Duration> JobOutlook::TimeUntil(const QueueSum& before) const {
  if (before.unknown > 0) return std::nullopt;
  std::vector<absl::Duration> free;  // time until each serving group is free
  for (int group = 0; group < parts_.groups.size(); ++group) {
    const std::string& running = live_.StateOf(group).running;
    if (!running.empty()) {
      const LiveJob& live = live_.jobs.at(running);
      const std::optional<absl::Duration> whole =
          Expect(live.stored.job.request().model(), live.work.get());
      if (!whole.has_value()) return std::nullopt;
      free.push_back(std::max(*whole - WorkedOn(live, live_.steady), absl::ZeroDuration()));
    } else if (parts_.groups.Serves(group)) {
      free.push_back(absl::ZeroDuration());
    }
  }
  // No group serves any more; the estimates assume that the next process has as many groups as this
  // one had.
  if (free.empty()) free.push_back(absl::ZeroDuration());
  return StartBehind(std::move(free), before.jobs, before.estimate);
}

absl::Duration JobOutlook::RetryDelay() const {
  const std::optional<absl::Duration> time = TimeUntil({});
  if (!time.has_value()) return kUnknownTime;
  return std::clamp(*time, kShortestRetry, kLongestRetry);
}

void JobOutlook::AddTo(wan::v1::Job& job, const LiveJob& live) const {
  const std::optional<QueueSum> before = live_.queue.Before(job.name());
  if (before.has_value()) job.set_queue_position(before->jobs);
  AddEta(live, before, job);
}

void JobOutlook::AddEta(const LiveJob& live, const std::optional<QueueSum>& before,
                        wan::v1::Job& job) const {
  const std::string& model = job.request().model();
  const std::optional<absl::Duration> own = Expect(model, live.work.get());
  if (!own.has_value()) return;
  const TimeEstimator::Spread spread = parts_.estimator.ExpectedSpread(model);
  absl::Duration p50;
  absl::Duration p90;
  if (before.has_value()) {
    const std::optional<absl::Duration> start = TimeUntil(*before);
    if (!start.has_value()) return;
    p50 = (*start + *own) * spread.p50;
    p90 = (*start + *own) * spread.p90;
  } else if (job.state() == wan::v1::JOB_STATE_RUNNING) {
    const absl::Duration elapsed = WorkedOn(live, live_.steady);
    p50 = std::max(*own * spread.p50 - elapsed, absl::ZeroDuration());
    p90 = std::max(*own * spread.p90 - elapsed, absl::ZeroDuration());
  } else {
    return;
  }
  job.set_eta_seconds(absl::ToDoubleSeconds(p50));
  job.set_eta_p90_seconds(absl::ToDoubleSeconds(p90));
}

std::optional<absl::Duration> JobOutlook::TimeLeft(const LiveJob& live) const {
  const wan::v1::Job& job = live.stored.job;
  std::optional<absl::Duration> left;
  absl::Time since;
  if (live.progress_time > absl::InfinitePast() && job.progress().has_eta_seconds()) {
    left = absl::Seconds(job.progress().eta_seconds());
    since = live.progress_time;
  } else {
    left = Estimate(job.request().model(), live.work.get());
    if (!left.has_value()) return std::nullopt;
    *left *= parts_.estimator.JobSpread().p50;
    since = live.began;
  }
  return std::max(*left - (live_.steady.Now() - since), absl::ZeroDuration());
}

absl::Duration JobOutlook::ComputedAgain(const LiveJob& live) const {
  const wan::v1::Job& job = live.stored.job;
  const absl::Time now = live_.steady.Now();
  // A job that stops saves the state after its last completed step. Before the first step there is
  // nothing to save.
  if (live.progress_time == absl::InfinitePast()) return now - live.began;
  absl::Duration again = now - live.progress_time;
  if (job.progress().step() < job.progress().total()) again += TimeBeforeSteps(live);
  return again;
}

absl::Duration JobOutlook::TimeBeforeSteps(const LiveJob& live) const {
  if (live.work == nullptr) return absl::ZeroDuration();
  const PlannedWork before = live.work->BeforeSteps();
  return Estimate(live.stored.job.request().model(), &before).value_or(absl::ZeroDuration());
}

std::optional<absl::Duration> JobOutlook::SwitchCost(const LiveJob& live,
                                                     const std::string& model) const {
  absl::Duration cost = TimeBeforeSteps(live);
  const std::string& own = live.stored.job.request().model();
  if (model == own) return cost;
  // The weights of a ready model may have to be copied back from host memory or the disk, at the
  // switch and again when the job switches back. Each of these copies takes no longer than loading
  // the model.
  for (const std::string& moved : {model, own}) {
    const std::optional<absl::Duration> loading = parts_.models.LoadTime(moved);
    if (!loading.has_value()) return std::nullopt;
    cost += *loading;
  }
  return cost;
}

void JobOutlook::NoteHeadStart(LiveJob& live, const std::vector<wan::v1::Event>& events,
                               const wan::v1::StepProgress& progress) {
  if (events.empty() || !events.front().has_resumed()) return;
  if (!live.estimate.has_value() || !progress.has_eta_seconds()) return;
  const absl::Duration left = absl::Seconds(progress.eta_seconds());
  live.head_start = std::max(*live.estimate - left, absl::ZeroDuration());
}

void JobOutlook::LearnFrom(const LiveJob& live, absl::Duration taken) {
  if (!live.estimate.has_value()) return;
  const absl::Duration estimate = *live.estimate - live.head_start;
  const TimeEstimator::Spread spread = parts_.estimator.JobSpread();
  EstimateMet met{taken, estimate * spread.p50, estimate * spread.p90};
  if (taken > met.p90 && live.report != nullptr) {
    std::tie(met.slowest_stage, met.slowest_stage_taken) = live.report->SlowestKind();
  }
  for (StateListener* listener : parts_.listeners) listener->OnEstimateMet(live.stored.job, met);
  parts_.estimator.ObserveJob(absl::ToDoubleSeconds(estimate), absl::ToDoubleSeconds(taken));
}

}  // namespace wan::server
