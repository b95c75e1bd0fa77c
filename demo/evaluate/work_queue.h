// Runs tasks on a few threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace wan::demo {

// Thread-safe.
class WorkQueue {
 public:
  // `threads` must be above 0.
  explicit WorkQueue(int threads);
  // Waits until every task has run.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Tasks start in the order in which they were added, as soon as a thread is free.
  void Add(std::function<void()> task);

 private:
  void Work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any added_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::jthread> threads_;
};

}  // namespace wan::demo
