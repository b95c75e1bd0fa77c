#include "server/jobs/job_order.h"

#include <algorithm>
#include <utility>

#include "server/jobs/preemption.h"

namespace wan::server {

wan::v1::Usage JobOrder::UsageOf(const std::string& owner) const {
  const LiveJobs::Lock lock(live_);
  return live_.account.UsageOf(owner, live_.steady.Now());
}

absl::Status JobOrder::CheckQuota(const std::vector<NewJob>& jobs) const {
  if (jobs.empty()) return absl::OkStatus();
  const std::string& owner = jobs.front().stored.job.owner();
  UsageAccount::Demand demand{static_cast<int>(jobs.size())};
  for (const NewJob& job : jobs) {
    demand.estimate += parts_.outlook.Estimate(job.stored.job.request().model(), job.work.get())
                           .value_or(absl::ZeroDuration());
  }
  return CheckQuota(owner, demand);
}

absl::Status JobOrder::CheckQuota(const std::string& owner,
                                  const UsageAccount::Demand& demand) const {
  return live_.account.Admit(
      parts_.quotas.Of(owner), owner, demand, live_.steady.Now(), [&](int n) {
        live_.mutex.AssertHeld();
        const std::optional<QueueSum> before = live_.queue.BeforeNth(owner, n);
        return parts_.outlook.TimeUntil(before.value_or(QueueSum()))
            .value_or(JobOutlook::kUnknownTime);
      });
}

wan::v1::Event JobOrder::Enqueue(const LiveJob& live) {
  const wan::v1::Job& job = live.stored.job;
  const std::string& model = job.request().model();
  const QueueSum before = live_.queue.Add(
      {job.name(), model, job.request().priority(), live.age, !live.accepting, live.work,
       parts_.outlook.Expect(model, live.work.get()), /*announced_position=*/0, job.owner()});
  return parts_.outlook.QueuedEvent(job, before);
}

void JobOrder::NoteUnplanned(const wan::v1::Job& job) {
  unplanned_[job.request().model()].push_back(job.name());
}

std::vector<wan::v1::Job> JobOrder::TakeUnplanned(const std::string& model, size_t limit) {
  std::vector<wan::v1::Job> jobs;
  const LiveJobs::Lock lock(live_);
  std::vector<std::string>& names = unplanned_[model];
  for (; !names.empty() && jobs.size() < limit; names.pop_back()) {
    const auto live = live_.jobs.find(names.back());
    if (live == live_.jobs.end() || IsFinal(live->second.stored.job.state())) continue;
    jobs.push_back(live->second.stored.job);
  }
  return jobs;
}

void JobOrder::SetWork(const std::string& job, std::shared_ptr<const PlannedWork> work) {
  const LiveJobs::Lock lock(live_);
  LiveJob* const live = live_.Find(job);
  if (live == nullptr || IsFinal(live->stored.job.state())) return;
  live->work = std::move(work);
  if (live->stored.job.state() != wan::v1::JOB_STATE_QUEUED) return;
  live_.queue.Remove(job);
  Enqueue(*live);  // drop the Queued event, because the position has not changed
  live_.account.Estimate(
      job, parts_.outlook.Estimate(live->stored.job.request().model(), live->work.get()));
}

std::optional<QueueEntry> JobOrder::TakeFor(int group) {
  const QueueEntry* const first = live_.queue.First(RunnableIn(group), MayRun());
  if (first == nullptr) return std::nullopt;
  const std::string& latest = live_.StateOf(group).latest_model;
  const int others = parts_.groups.size() - 1;
  int& passed_over = live_.jobs.at(first->job).passed_over;
  if (!latest.empty() && first->model != latest && passed_over < others &&
      RanElsewhere(group, first->model)) {
    const JobQueue::Accepts same = [&](const std::string& model) {
      return model == latest && parts_.models.IsReadyIn(model, group);
    };
    const QueueEntry* const own = live_.queue.First(same, MayRun());
    if (own != nullptr && own->priority == first->priority &&
        live_.queue.Position(own->job).value_or(0) - live_.queue.Position(first->job).value_or(0) <=
            others) {
      ++passed_over;
      return live_.queue.TakeFirst(same, MayRun());
    }
  }
  return live_.queue.TakeFirst(RunnableIn(group), MayRun());
}

std::optional<std::string> JobOrder::ModelToLoad(int group) {
  const LiveJobs::Lock lock(live_);
  if (!live_.refusal.ok() || !parts_.groups.Serves(group)) return std::nullopt;
  live_.queue.RefreshUse();
  if (live_.queue.First(RunnableIn(group), MayRun()) != nullptr) return std::nullopt;
  const JobQueue::Accepts loadable = [&](const std::string& model) {
    live_.mutex.AssertHeld();
    if (!parts_.models.MayLoadMissing(model, group)) return false;
    const std::vector<int> ready = parts_.models.ReadyIn(model);
    return std::none_of(ready.begin(), ready.end(), [&](int other) {
      live_.mutex.AssertHeld();
      // Do not load the model in this group if a free group has the model: that group takes the job
      // at once.
      return live_.StateOf(other).running.empty();
    });
  };
  const QueueEntry* const entry = live_.queue.First(loadable, MayRun());
  return entry == nullptr ? std::nullopt : std::optional(entry->model);
}

std::optional<std::string> JobOrder::SuccessorOf(const LiveJob& live, int gap) {
  const wan::v1::Job& row = live.stored.job;
  // After the last step only decoding is left, which no savepoint can shorten.
  if (gap == 0 || row.progress().step() == row.progress().total()) return std::nullopt;
  const QueueEntry* const first = live_.queue.First(RunnableIn(live.group), MayRun());
  if (first == nullptr || !IsNextToGiveWay(live, *first) ||
      !PreemptionPays({row.request().priority(), first->priority, parts_.outlook.TimeLeft(live),
                       parts_.outlook.SwitchCost(live, first->model)},
                      gap)) {
    return std::nullopt;
  }
  return first->job;
}

bool JobOrder::IsNextToGiveWay(const LiveJob& live, const QueueEntry& waiting) const {
  for (int group = 0; group < parts_.groups.size(); ++group) {
    const std::string& running = live_.StateOf(group).running;
    if (group == live.group) continue;
    if (running.empty()) {
      // A free group that has the model will take the job at once, so no job needs to give way.
      if (parts_.groups.Serves(group) && parts_.models.IsReadyIn(waiting.model, group)) {
        return false;
      }
      continue;
    }
    const LiveJob& other = live_.jobs.at(running);
    if (other.preempted && other.successor == waiting.job) return false;
    if (other.requeue.has_value() || other.stop_cause.has_value()) continue;
    if (parts_.models.IsReadyIn(waiting.model, group) &&
        other.stored.job.request().priority() < live.stored.job.request().priority()) {
      return false;
    }
  }
  return true;
}

bool JobOrder::RanElsewhere(int group, const std::string& model) const {
  for (int other = 0; other < parts_.groups.size(); ++other) {
    if (other != group && live_.StateOf(other).latest_model == model &&
        parts_.groups.Serves(other) && parts_.models.IsReadyIn(model, other)) {
      return true;
    }
  }
  return false;
}

JobQueue::Accepts JobOrder::RunnableIn(int group) const {
  return [this, group](const std::string& model) { return parts_.models.IsReadyIn(model, group); };
}

JobQueue::Accepts JobOrder::MayRun() const {
  return [this](const std::string& owner) {
    live_.mutex.AssertHeld();
    return live_.account.MayRun(parts_.quotas.Of(owner), owner);
  };
}

}  // namespace wan::server
