// Threads for what RPCs do that may block for a moment: durable writes, reads of the store and of
// files. gRPC's own threads stay free.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  // Runs what was posted, also by tasks meanwhile, and joins the threads.
  ~WorkerPool();

  // Tasks begin in the order of their posting.
  void Post(std::function<void()> task);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace wan::server
