#include "server/jobs/storage_watch.h"

#include <utility>

namespace wan::server {
namespace {

constexpr absl::Duration kProbeInterval = absl::Seconds(1);

}  // namespace

StorageWatch::~StorageWatch() { Stop(); }

void StorageWatch::Start(Calls calls) {
  thread_ = std::thread([this, calls = std::move(calls)] { Loop(calls); });
}

absl::Status StorageWatch::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void StorageWatch::Report(const absl::Status& problem) {
  absl::MutexLock lock(&mutex_);
  status_.Update(problem);
}

void StorageWatch::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void StorageWatch::Loop(const Calls& calls) {
  for (;;) {
    absl::Status problem;
    {
      absl::MutexLock lock(&mutex_);
      const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || !status_.ok();
      };
      mutex_.Await(absl::Condition(&wanted));
      if (stop_) return;
      problem = status_;
    }
    calls.changed(problem);
    while (!problem.ok()) {
      {
        absl::MutexLock lock(&mutex_);
        if (clock_.AwaitUntil(mutex_, absl::Condition(&stop_), clock_.Now() + kProbeInterval)) {
          return;
        }
      }
      problem = calls.probe();
      absl::MutexLock lock(&mutex_);
      status_ = problem;
    }
    calls.changed(absl::OkStatus());
  }
}

}  // namespace wan::server
