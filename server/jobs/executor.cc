#include "server/jobs/executor.h"

#include <utility>

namespace wan::server {

Executor::Executor() = default;

Executor::~Executor() { Stop(); }

void Executor::Start(RunNextJob run_next_job) {
  absl::MutexLock lock(&join_mutex_);
  thread_ = std::thread([this, run = std::move(run_next_job)] { Loop(run); });
}

void Executor::Post(Task task) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stop_) {
      tasks_.push_back(std::move(task));
      return;
    }
  }
  task.dropped();
}

void Executor::Wake() {
  absl::MutexLock lock(&mutex_);
  wake_ = true;
}

void Executor::Halt() {
  std::deque<Task> dropped;
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    dropped.swap(tasks_);
  }
  for (const Task& task : dropped) task.dropped();
}

void Executor::Stop() {
  Halt();
  absl::MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void Executor::Loop(const RunNextJob& run_next_job) {
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      const auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || wake_ || !tasks_.empty();
      };
      mutex_.Await(absl::Condition(&work));
      if (stop_) return;
      // Clear the flag before the work, so that a Wake() during the work makes the loop look for
      // jobs again.
      wake_ = false;
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task.run != nullptr) {
      task.run();
      Wake();
    } else if (run_next_job()) {
      Wake();
    }
  }
}

}  // namespace wan::server
