#include "engine/group/agreement.h"

#include <utility>

namespace wan {

void Agreement::Begin(std::stop_token stop) {
  absl::MutexLock lock(&mutex_);
  stop_ = std::move(stop);
  decided_ = -1;
  end_ = kNever;
  failure_ = absl::OkStatus();
}

absl::Status Agreement::At(int64_t point) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (point > decided_) {
    decided_ = point;
    if (end_ == kNever && stop_.stop_requested()) end_ = point;
  }
  return point < end_ ? absl::OkStatus() : absl::CancelledError("a stop was requested");
}

void Agreement::Fail(const absl::Status& failure) {
  absl::MutexLock lock(&mutex_);
  failure_.Update(failure);
}

absl::Status Agreement::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

}  // namespace wan
