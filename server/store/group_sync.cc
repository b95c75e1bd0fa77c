#include "server/store/group_sync.h"

namespace wan::server {

GroupSync::GroupSync(std::function<absl::Status()> sync)
    : sync_(std::move(sync)), thread_([this] { Loop(); }) {}

GroupSync::~GroupSync() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void GroupSync::Await(Done done) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(done));
}

std::optional<absl::Status> GroupSync::TrySync() {
  {
    absl::MutexLock lock(&mutex_);
    if (syncing_ || !waiting_.empty()) return std::nullopt;
    syncing_ = true;
  }
  absl::Status status = sync_();
  absl::MutexLock lock(&mutex_);
  syncing_ = false;
  return status;
}

int GroupSync::waiting() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(waiting_.size());
}

void GroupSync::Loop() {
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !syncing_ && (!waiting_.empty() || stop_);
  };
  for (;;) {
    std::vector<Done> round;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (waiting_.empty()) return;
      round.swap(waiting_);
      syncing_ = true;
    }
    const absl::Status status = sync_();
    {
      absl::MutexLock lock(&mutex_);
      syncing_ = false;
    }
    for (const Done& done : round) done(status);
  }
}

SerialThread::~SerialThread() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void SerialThread::Post(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

bool SerialThread::TryRun(absl::FunctionRef<void()> task) {
  {
    absl::MutexLock lock(&mutex_);
    if (running_ || !tasks_.empty()) return false;
    running_ = true;
  }
  task();
  absl::MutexLock lock(&mutex_);
  running_ = false;
  return true;
}

void SerialThread::Loop() {
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !running_ && (!tasks_.empty() || stop_);
  };
  for (;;) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      running_ = true;
    }
    task();
    task = nullptr;
    absl::MutexLock lock(&mutex_);
    running_ = false;
  }
}

}  // namespace wan::server
