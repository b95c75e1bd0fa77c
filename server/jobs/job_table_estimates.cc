// What JobTable tells of times to come.
#include <algorithm>
#include <tuple>
#include <utility>

#include "server/conversion/convert.h"
#include "server/jobs/job_table.h"
#include "server/jobs/start_time.h"

namespace wan::server {
namespace {

constexpr absl::Duration kShortestRetry = absl::Seconds(1);
constexpr absl::Duration kUnknownRetry = absl::Seconds(5);
constexpr absl::Duration kLongestRetry = absl::Minutes(1);

}  // namespace

JobTable::Outlook JobTable::OutlookFor(const std::string& owner, int priority) const {
  const Lock lock(*this);
  const QueueSum before = queue_.BeforeNew(owner, priority);
  return {before.jobs, TimeUntil(before)};
}

std::optional<absl::Duration> JobTable::Estimate(const std::string& model,
                                                 const PlannedWork* work) const {
  if (work == nullptr) return std::nullopt;
  const std::optional<double> seconds = parts_.estimator.Seconds(model, *work);
  if (!seconds.has_value()) return std::nullopt;
  return absl::Seconds(*seconds);
}

std::optional<absl::Duration> JobTable::Expect(const std::string& model,
                                               const PlannedWork* work) const {
  if (work == nullptr) return std::nullopt;
  const std::optional<double> seconds = parts_.estimator.Expected(model, *work);
  if (!seconds.has_value()) return std::nullopt;
  return absl::Seconds(*seconds);
}

std::optional<absl::Duration> JobTable::TimeUntil(const QueueSum& before) const {
  if (before.unknown > 0) return std::nullopt;
  std::vector<absl::Duration> free;  // of each group that serves
  for (int group = 0; group < parts_.groups.size(); ++group) {
    const std::string& running = StateOf(group).running;
    if (!running.empty()) {
      const LiveJob& live = live_.at(running);
      const std::optional<absl::Duration> whole =
          Expect(live.stored.job.request().model(), live.work.get());
      if (!whole.has_value()) return std::nullopt;
      const absl::Duration elapsed = steady_.Now() - live.began + live.head_start;
      free.push_back(std::max(*whole - elapsed, absl::ZeroDuration()));
    } else if (parts_.groups.Serves(group)) {
      free.push_back(absl::ZeroDuration());
    }
  }
  // No group serves any more: the next process has as many.
  if (free.empty()) free.push_back(absl::ZeroDuration());
  return StartBehind(std::move(free), before.jobs, before.estimate);
}

absl::Status JobTable::CheckQuota(const std::vector<NewJob>& jobs) const {
  if (jobs.empty()) return absl::OkStatus();
  const std::string& owner = jobs.front().stored.job.owner();
  UsageAccount::Demand demand{static_cast<int>(jobs.size())};
  for (const NewJob& job : jobs) {
    demand.estimate +=
        Estimate(job.stored.job.request().model(), job.work.get()).value_or(absl::ZeroDuration());
  }
  return account_.Admit(parts_.quotas.Of(owner), owner, demand, steady_.Now(), [&](int n) {
    mutex_.AssertHeld();
    const std::optional<QueueSum> before = queue_.BeforeNth(owner, n);
    return TimeUntil(before.value_or(QueueSum())).value_or(kUnknownRetry);
  });
}

absl::Duration JobTable::RetryDelay() const {
  const std::optional<absl::Duration> time = TimeUntil({});
  if (!time.has_value()) return kUnknownRetry;
  return std::clamp(*time, kShortestRetry, kLongestRetry);
}

void JobTable::AddEta(const LiveJob& live, const std::optional<QueueSum>& before,
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
    const absl::Duration elapsed = steady_.Now() - live.began + live.head_start;
    p50 = std::max(*own * spread.p50 - elapsed, absl::ZeroDuration());
    p90 = std::max(*own * spread.p90 - elapsed, absl::ZeroDuration());
  } else {
    return;
  }
  job.set_eta_seconds(absl::ToDoubleSeconds(p50));
  job.set_eta_p90_seconds(absl::ToDoubleSeconds(p90));
}

void JobTable::AddGroups(JobStats& stats) const {
  for (int number = 0; number < parts_.groups.size(); ++number) {
    JobStats::Group& group = stats.groups.emplace_back();
    group.device = parts_.groups.device(number).device;
    group.problem = parts_.groups.ProblemOf(number);
    group.job = StateOf(number).running;
    if (group.job.empty()) continue;
    const LiveJob& live = live_.at(group.job);
    wan::v1::Job job = live.stored.job;
    AddEta(live, std::nullopt, job);
    if (!job.has_eta_seconds()) continue;
    group.left_p50 = job.eta_seconds();
    group.left_p90 = job.eta_p90_seconds();
  }
}

void JobTable::LearnFrom(const LiveJob& live, absl::Duration taken) {
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

std::vector<RunningOutlook> JobTable::Running() const {
  const Lock lock(*this);
  std::vector<RunningOutlook> outlooks;
  for (const GroupState& group : groups_) {
    if (group.running.empty()) continue;
    const LiveJob& live = live_.at(group.running);
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

std::optional<absl::Duration> JobTable::TimeLeft(const LiveJob& live) const {
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
  return std::max(*left - (steady_.Now() - since), absl::ZeroDuration());
}

absl::Duration JobTable::ComputedAgain(const LiveJob& live) const {
  const wan::v1::Job& job = live.stored.job;
  const absl::Time now = steady_.Now();
  // A stop keeps the last step that ended. Before the first one nothing is kept.
  if (live.progress_time == absl::InfinitePast()) return now - live.began;
  absl::Duration again = now - live.progress_time;
  if (job.progress().step() < job.progress().total()) again += TimeBeforeSteps(live);
  return again;
}

absl::Duration JobTable::TimeBeforeSteps(const LiveJob& live) const {
  if (live.work == nullptr) return absl::ZeroDuration();
  const PlannedWork before = live.work->BeforeSteps();
  return Estimate(live.stored.job.request().model(), &before).value_or(absl::ZeroDuration());
}

std::optional<absl::Duration> JobTable::SwitchCost(const LiveJob& live,
                                                   const std::string& model) const {
  absl::Duration cost = TimeBeforeSteps(live);
  const std::string& own = live.stored.job.request().model();
  if (model == own) return cost;
  // The weights of a model that is ready may still have to come back from host memory or from the
  // disk. That takes no longer than loading it, there and back.
  for (const std::string& moved : {model, own}) {
    const std::optional<absl::Duration> loading = parts_.models.LoadTime(moved);
    if (!loading.has_value()) return std::nullopt;
    cost += *loading;
  }
  return cost;
}

void JobTable::NoteHeadStart(LiveJob& live, const std::vector<wan::v1::Event>& events,
                             const wan::v1::StepProgress& progress) {
  if (events.empty() || !events.front().has_resumed()) return;
  if (!live.estimate.has_value() || !progress.has_eta_seconds()) return;
  const absl::Duration left = absl::Seconds(progress.eta_seconds());
  live.head_start = std::max(*live.estimate - left, absl::ZeroDuration());
}

}  // namespace wan::server
