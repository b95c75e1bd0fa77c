#include "server/jobs/drainer.h"

#include <algorithm>
#include <utility>

#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/stop_decision.h"

namespace wan::server {
namespace {

constexpr char kStopped[] = "server stopped while the job was running";
constexpr char kDrained[] = "server was drained while the job was running";

}  // namespace

Drainer::Drainer(Parts parts) : parts_(std::move(parts)) {}

Drainer::~Drainer() { Join(); }

void Drainer::Begin(StopMode mode, absl::Duration timeout, Done done) {
  wan::v1::DrainResponse outcome;
  {
    absl::MutexLock lock(&mutex_);
    AwaitUndrained();
    if (!outcome_.has_value()) {
      waiting_.push_back(std::move(done));
      if (begun_) return;
      begun_ = true;
      const std::vector<std::string> running =
          parts_.table.Close(stopping_ ? ServerStoppingError() : ServerDrainingError());
      thread_ = std::thread([this, mode, timeout, running] { Run(mode, timeout, running); });
      return;
    }
    outcome = *outcome_;
  }
  done(outcome);
}

void Drainer::AwaitUndrained() const {
  const auto undrained = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !undraining_; };
  mutex_.Await(absl::Condition(&undrained));
}

absl::Status Drainer::Undrain() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    AwaitUndrained();
    if (!begun_ || stopping_) return NotDrainingError(stopping_);
    undraining_ = true;
    parts_.table.Reopen();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();  // soon, because the table is open
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_) parts_.models.Resume();
    waiting.swap(waiting_);
  }
  for (StateListener* listener : parts_.listeners) listener->OnUndrained();
  {
    // From here on another drain may begin, whose listeners hear of it after this one's end.
    absl::MutexLock lock(&mutex_);
    begun_ = false;
    outcome_.reset();
    undraining_ = false;
  }
  for (const Done& done : waiting) done(DrainTakenBackError());
  return absl::OkStatus();
}

bool Drainer::draining() const {
  absl::MutexLock lock(&mutex_);
  return begun_ || stopping_;
}

void Drainer::Stop(StopMode mode, absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    parts_.table.Close(ServerStoppingError());
  }
  parts_.models.Stop();
  // The log is writing that a kill does not count against the job any more; nothing waits for it.
  EndRunning(mode, grace, kStopped);
  Join();
}

void Drainer::Join() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    AwaitUndrained();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Drainer::EndRunning(StopMode mode, absl::Duration limit, std::string_view reason) {
  std::vector<StopChoice> choices;
  for (const RunningOutlook& outlook : parts_.table.Running()) {
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
    parts_.table.AwaitEnd(choice.job, begun + choice.may_go_on);
    parts_.table.RequeueRunning(choice.job, reason);
  }
  for (const StopChoice& choice : choices) {
    parts_.table.AwaitEnd(choice.job, absl::InfiniteFuture());
  }
}

void Drainer::Run(StopMode mode, absl::Duration timeout, const std::vector<std::string>& running) {
  for (StateListener* listener : parts_.listeners) listener->OnDraining();
  parts_.models.Stop();
  // The log is writing that a kill does not count against the job any more; nothing waits for it.
  EndRunning(mode, timeout, kDrained);
  parts_.log.Flush().IgnoreError();  // the listeners have been told of the problem
  wan::v1::DrainResponse response;
  for (const std::string& name : running) {
    const std::optional<wan::v1::Job> job = parts_.table.Find(name);
    wan::v1::DrainedJob& drained = *response.add_jobs();
    drained.set_job(name);
    drained.set_job_ended(!job.has_value() || IsFinal(job->state()));
  }
  if (!running.empty()) {
    response.set_job(response.jobs(0).job());
    response.set_job_ended(response.jobs(0).job_ended());
  }
  response.set_queued_jobs(parts_.table.Stats().queued_total);
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    if (undraining_) return;  // Undrain answers those that wait
    outcome_ = response;
    waiting.swap(waiting_);
  }
  for (const Done& done : waiting) done(response);
}

}  // namespace wan::server
