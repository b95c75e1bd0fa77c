#include "demo/evaluate/work_queue.h"

#include <utility>

namespace wan::demo {

WorkQueue::WorkQueue(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
  }
}

WorkQueue::~WorkQueue() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void WorkQueue::Add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  added_.notify_one();
}

void WorkQueue::Work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  // A stop ends only the waiting: tasks that are there still run.
  while (added_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace wan::demo
