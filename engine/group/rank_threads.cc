#include "engine/group/rank_threads.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace wan {

RankThreads::RankThreads(int ranks) {
  for (int rank = 1; rank < ranks; ++rank) threads_.emplace_back([this, rank] { Loop(rank); });
}

RankThreads::~RankThreads() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status RankThreads::Run(const Work& work, const OnFailure& on_failure) {
  {
    absl::MutexLock lock(&mutex_);
    work_ = &work;
    on_failure_ = &on_failure;
    status_ = absl::OkStatus();
    thrown_ = nullptr;
    working_ = static_cast<int>(threads_.size());
    ++round_;
  }
  Do(0, work, on_failure);
  absl::MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return working_ == 0; };
  mutex_.Await(absl::Condition(&ended));
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return status_;
}

void RankThreads::Loop(int rank) {
  int64_t seen = 0;
  for (;;) {
    const Work* work = nullptr;
    const OnFailure* on_failure = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      const auto called = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || round_ != seen;
      };
      mutex_.Await(absl::Condition(&called));
      if (stop_) return;
      seen = round_;
      work = work_;
      on_failure = on_failure_;
    }
    Do(rank, *work, *on_failure);
    absl::MutexLock lock(&mutex_);
    --working_;
  }
}

void RankThreads::Do(int rank, const Work& work, const OnFailure& on_failure) {
  absl::Status status;
  std::exception_ptr thrown;
  try {
    status = work(rank);
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    status = absl::AbortedError(absl::StrCat("rank ", rank, ": ", error.what()));
  }
  if (status.ok()) return;
  {
    // Keep only the first failure, because the failures of other ranks follow from it.
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) {
      status_ = status;
      thrown_ = thrown;
    }
  }
  on_failure(status);
}

}  // namespace wan
