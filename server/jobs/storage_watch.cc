#include "server/jobs/storage_watch.h"

#include <utility>

namespace wan::server {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);

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
  absl::Status told;       // the last status that `changed` was called with
  absl::Status told_room;  // the last status that `room_changed` was called with
  for (;;) {
    const absl::Status room = calls.room();
    if (room != told_room) calls.room_changed(room);
    told_room = room;
    absl::Status problem;
    {
      absl::MutexLock lock(&mutex_);
      const auto wanted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || (told.ok() && !status_.ok());
      };
      clock_.AwaitUntil(mutex_, absl::Condition(&wanted), clock_.Now() + kInterval);
      if (stop_) return;
      problem = status_;
    }
    if (problem.ok()) continue;
    if (told.ok()) {
      calls.changed(problem);
      told = problem;
      continue;  // probe a second after the report, not at once
    }
    problem = calls.probe();
    {
      absl::MutexLock lock(&mutex_);
      status_ = problem;
    }
    if (problem.ok()) calls.changed(problem);
    told = problem;
  }
}

}  // namespace wan::server
