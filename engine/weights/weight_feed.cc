#include "engine/weights/weight_feed.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <system_error>

#include "absl/status/status.h"
#include "engine/device/torch_errors.h"

namespace wan {
namespace {

std::exception_ptr Stopped() {
  return std::make_exception_ptr(
      StatusException(absl::CancelledError("bringing up weights was stopped on request")));
}

}  // namespace

WeightFeed::WeightFeed(WeightMover& mover, std::vector<Copy> copies, WeightMover::Mark after,
                       std::stop_token stop, const FeedLimits& limits)
    : mover_(mover),
      copies_(std::move(copies)),
      after_(std::move(after)),
      stop_(std::move(stop)),
      limits_(limits) {
  Run(/*may_wait=*/false);
  const bool is_over = [this] {
    const absl::MutexLock lock(&mutex_);
    return over_;
  }();
  if (is_over) return;
  try {
    thread_ = std::thread([this] { Run(/*may_wait=*/true); });
  } catch (const std::system_error&) {
    // If the system cannot start a thread, the caller's thread queues the copies and waits for
    // them.
    Run(/*may_wait=*/true);
  }
}

WeightFeed::~WeightFeed() { End(); }

WeightMover::Mark WeightFeed::Await(size_t group) {
  const absl::MutexLock lock(&mutex_);
  const auto is_known = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return over_ || whole_.contains(group);
  };
  mutex_.Await(absl::Condition(&is_known));
  if (const auto found = whole_.find(group); found != whole_.end()) return found->second;
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return nullptr;
}

void WeightFeed::Check() const {
  const absl::MutexLock lock(&mutex_);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

WeightMover::Mark WeightFeed::End() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
  const absl::MutexLock lock(&mutex_);
  return last_;
}

void WeightFeed::Run(bool may_wait) noexcept {
  const c10::InferenceMode inference;
  std::exception_ptr failure;
  try {
    while (next_ < copies_.size()) {
      const int64_t left = static_cast<int64_t>(copies_[next_].host.nbytes()) - next_byte_;
      const int64_t piece = std::min(limits_.piece_bytes, left);
      while (!queued_.empty() && outstanding_ + piece > limits_.window_bytes) {
        if (!may_wait) return;
        mover_.WaitFor(queued_.front().first);
        outstanding_ -= queued_.front().second;
        queued_.pop_front();
      }
      const bool ended = [&] {
        const absl::MutexLock lock(&mutex_);
        return ending_;
      }();
      if (ended || stop_.stop_requested()) {
        failure = Stopped();
        break;
      }
      QueuePiece();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const absl::MutexLock lock(&mutex_);
  failure_ = failure;
  over_ = true;
}

void WeightFeed::QueuePiece() {
  const Copy& copy = copies_[next_];
  const auto size = static_cast<int64_t>(copy.host.nbytes());
  const int64_t piece = std::min(limits_.piece_bytes, size - next_byte_);
  WeightMover::Mark mark;
  if (piece > 0) {
    mark = mover_.CopyToDevice(copy.host.narrow(0, next_byte_, piece),
                               copy.device.narrow(0, next_byte_, piece), after_);
    next_byte_ += piece;
    if (!mover_.DeviceIsHost()) {
      queued_.emplace_back(mark, piece);
      outstanding_ += piece;
    }
  }
  const absl::MutexLock lock(&mutex_);
  if (mark != nullptr) last_ = mark;
  if (next_byte_ < size) return;
  const size_t group = copy.group;
  ++next_;
  next_byte_ = 0;
  if (next_ == copies_.size() || copies_[next_].group != group) whole_[group] = last_;
}

}  // namespace wan
