// Runs the threads that queue the work of the ranks of a group.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan {

// Rank 0 runs on the caller's thread. Every other rank has a thread of its own, which lives as long
// as the object. Only one thread at a time may call Run.
class RankThreads {
 public:
  // A rank's work. Run calls it with the rank's number, on the rank's thread.
  using Work = std::function<absl::Status(int rank)>;
  // The handler of a failure. Run calls it on the thread of a rank that has failed, before Run
  // returns.
  using OnFailure = std::function<void(const absl::Status&)>;

  explicit RankThreads(int ranks);
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;
  ~RankThreads();

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls `work` for all ranks at the same time, and returns once all of them have ended. If ranks
  // have failed, throws the exception, or returns the status, of the rank that failed first.
  absl::Status Run(const Work& work, const OnFailure& on_failure);

 private:
  void Loop(int rank);
  void Do(int rank, const Work& work, const OnFailure& on_failure);

  absl::Mutex mutex_;
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  const OnFailure* on_failure_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  int working_ ABSL_GUARDED_BY(mutex_) = 0;  // number of threads that are still working
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // status of the rank that failed first
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace wan
