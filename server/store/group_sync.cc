#include "server/store/group_sync.h"

namespace wan::server {

absl::Status GroupSync::Await() {
  std::shared_ptr<Round> round;
  {
    absl::MutexLock lock(&mutex_);
    round = next_;
    ++waiting_;
    const auto mine_or_done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return round->done || !syncing_;
    };
    mutex_.Await(absl::Condition(&mine_or_done));
    if (round->done) return round->status;
    syncing_ = true;
    waiting_ = 0;  // all who wait share this round
    next_ = std::make_shared<Round>();
  }
  absl::Status status = sync_();
  absl::MutexLock lock(&mutex_);
  syncing_ = false;
  round->done = true;
  round->status = status;
  return status;
}

int GroupSync::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

}  // namespace wan::server
