#include "server/jobs/drainer.h"

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
    if (!outcome_.has_value()) {
      waiting_.push_back(std::move(done));
      if (begun_) return;
      begun_ = true;
      const std::string running =
          parts_.table.Close(stopping_ ? ServerStoppingError() : ServerDrainingError());
      thread_ = std::thread([this, mode, timeout, running] { Run(mode, timeout, running); });
      return;
    }
    outcome = *outcome_;
  }
  done(outcome);
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
  parts_.log.Flush().IgnoreError();  // from here on a kill does not count against the job
  EndRunning(mode, grace, kStopped);
  Join();
}

void Drainer::Join() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Drainer::EndRunning(StopMode mode, absl::Duration limit, std::string_view reason) {
  const std::optional<RunningOutlook> outlook = parts_.table.Running();
  if (!outlook.has_value()) return;
  const absl::Duration time = TimeToFinish(mode, *outlook, limit);
  const StopChoice choice{outlook->job, outlook->left, outlook->RestartCost(), time};
  for (StateListener* listener : parts_.listeners) listener->OnStopChoice(choice);
  parts_.table.AwaitIdle(time);
  parts_.table.RequeueRunning(reason);
  parts_.table.AwaitIdle(absl::InfiniteDuration());
}

void Drainer::Run(StopMode mode, absl::Duration timeout, const std::string& running) {
  for (StateListener* listener : parts_.listeners) listener->OnDraining();
  parts_.models.Stop();
  parts_.log.Flush().IgnoreError();  // from here on a kill does not count against the job
  EndRunning(mode, timeout, kDrained);
  parts_.log.Flush().IgnoreError();  // the listeners have been told of the problem
  wan::v1::DrainResponse response;
  response.set_job(running);
  if (!running.empty()) {
    const std::optional<wan::v1::Job> job = parts_.table.Find(running);
    response.set_job_ended(!job.has_value() || IsFinal(job->state()));
  }
  response.set_queued_jobs(parts_.table.Stats().queued_total);
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    outcome_ = response;
    waiting.swap(waiting_);
  }
  for (const Done& done : waiting) done(response);
}

}  // namespace wan::server
