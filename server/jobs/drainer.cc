#include "server/jobs/drainer.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/stop_decision.h"

namespace wan::server {
namespace {

constexpr char kStopped[] = "server stopped while the job was running";
constexpr char kDrained[] = "server was drained while the job was running";

}  // namespace

Drainer::Drainer(Parts parts) : parts_(std::move(parts)) {}

void Drainer::Begin(StopMode mode, absl::Duration timeout, Done done) {
  wan::v1::DrainResponse outcome;
  {
    absl::MutexLock lock(&mutex_);
    if (undraining_) {  // the new drain begins after the undrain
      thread_.Post([this, mode, timeout, done = std::move(done)] { Begin(mode, timeout, done); });
      return;
    }
    if (!outcome_.has_value()) {
      waiting_.push_back(std::move(done));
      if (begun_) return;
      begun_ = true;
      const std::vector<std::string> running =
          parts_.states.Close(stopping_ ? ServerStoppingError() : ServerDrainingError());
      thread_.Post([this, mode, timeout, running] { Run(mode, timeout, running); });
      return;
    }
    outcome = *outcome_;
  }
  done(outcome);
}

void Drainer::Undrain(Undone done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    if (undraining_) {  // decide about this undrain after the one that is under way
      thread_.Post([this, done = std::move(done)] { Undrain(done); });
      return;
    }
    if (begun_ && !stopping_) {
      undraining_ = true;
      parts_.states.Reopen();  // end the wait of the drain's own task
      thread_.Post([this, done = std::move(done)] { FinishUndrain(done); });
      return;
    }
    refused = NotDrainingError(stopping_);
  }
  done(refused);
}

void Drainer::FinishUndrain(const Undone& done) {
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_) parts_.models.Resume();
    waiting.swap(waiting_);
  }
  for (StateListener* listener : parts_.listeners) listener->OnUndrained();
  {
    // Allow another drain only now, so that listeners hear OnUndrained before the OnDraining of
    // that drain.
    absl::MutexLock lock(&mutex_);
    begun_ = false;
    outcome_.reset();
    undraining_ = false;
  }
  for (const Done& told : waiting) told(DrainTakenBackError());
  done(absl::OkStatus());
}

bool Drainer::draining() const {
  absl::MutexLock lock(&mutex_);
  return begun_ || stopping_;
}

void Drainer::Stop(StopMode mode, absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    parts_.states.Close(ServerStoppingError());
  }
  parts_.models.Stop();
  // The log now removes the running attempts' entries (server/jobs/attempts.h), so that a kill from
  // here on does not count against a job.
  EndRunning(mode, grace, kStopped);
  Join();
}

void Drainer::Join() {
  // Wait twice, because a drain that waits for an Undrain posts a second task when its turn comes.
  for (int i = 0; i < 2; ++i) {
    absl::Notification ended;
    thread_.Post([&ended] { ended.Notify(); });
    ended.WaitForNotification();
  }
}

void Drainer::EndRunning(StopMode mode, absl::Duration limit, std::string_view reason) {
  std::vector<StopChoice> choices;
  for (const RunningOutlook& outlook : parts_.outlook.Running()) {
    choices.push_back(
        {outlook.job, outlook.left, outlook.RestartCost(), TimeToFinish(mode, outlook, limit)});
  }
  for (const StopChoice& choice : choices) {
    for (StateListener* listener : parts_.listeners) listener->OnStopChoice(choice);
  }
  std::sort(choices.begin(), choices.end(),
            [](const StopChoice& a, const StopChoice& b) { return a.may_go_on < b.may_go_on; });
  const absl::Time begun = parts_.clock.Steady().Now();
  for (const StopChoice& choice : choices) {
    parts_.states.AwaitEnd(choice.job, begun + choice.may_go_on);
    parts_.states.RequeueRunning(choice.job, reason);
  }
  for (const StopChoice& choice : choices) {
    parts_.states.AwaitEnd(choice.job, absl::InfiniteFuture());
  }
}

void Drainer::Run(StopMode mode, absl::Duration timeout, const std::vector<std::string>& running) {
  for (StateListener* listener : parts_.listeners) listener->OnDraining();
  parts_.models.Stop();
  // As in Stop, the log now removes the running attempts' entries.
  EndRunning(mode, timeout, kDrained);
  parts_.log.Flush().IgnoreError();  // ignore errors: the log itself reports them
  wan::v1::DrainResponse response;
  for (const std::string& name : running) {
    const std::optional<wan::v1::Job> job = parts_.states.Look(name).job;
    wan::v1::DrainedJob& drained = *response.add_jobs();
    drained.set_job(name);
    drained.set_job_ended(!job.has_value() || IsFinal(job->state()));
  }
  if (!running.empty()) {
    response.set_job(response.jobs(0).job());
    response.set_job_ended(response.jobs(0).job_ended());
  }
  response.set_queued_jobs(parts_.outlook.Stats().queued_total);
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    if (undraining_) return;  // FinishUndrain answers the waiting calls
    outcome_ = response;
    waiting.swap(waiting_);
  }
  for (const Done& done : waiting) done(response);
}

}  // namespace wan::server
