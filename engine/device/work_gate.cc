#include "engine/device/work_gate.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Event.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace wan {
namespace {

// The queue of the stream that LibTorch uses.
class StreamQueue final : public WorkQueue {
 public:
  explicit StreamQueue(c10::Device device) : device_(device) {}

  Mark MarkEnd() override {
    auto event = std::make_shared<c10::Event>(device_.type());
    event->record(at::accelerator::getCurrentStream(device_.index()));
    return event;
  }

  void Await(const Mark& mark) override {
    static_cast<const c10::Event*>(mark.get())->synchronize();
  }

 private:
  const c10::Device device_;
};

}  // namespace

// Work that is queued and that the device may not have finished.
class WorkGate::Backlog {
 public:
  explicit Backlog(std::shared_ptr<WorkQueue> queue) : queue_(std::move(queue)) {}

  void Add(double flops) {
    unmarked_ += std::max(flops, kLeastFlops);
    if (unmarked_ < kFlopsBetweenMarks) return;
    marked_.push_back({queue_->MarkEnd(), unmarked_});
    outstanding_ += unmarked_;
    unmarked_ = 0;
    // Never wait for the last piece, however large it is; otherwise the device would be idle
    // afterwards.
    while (marked_.size() > 1 && outstanding_ > kMostOutstandingFlops) {
      queue_->Await(marked_.front().end);
      outstanding_ -= marked_.front().flops;
      marked_.pop_front();
    }
  }

 private:
  struct Piece {
    WorkQueue::Mark end;
    double flops = 0;
  };

  const std::shared_ptr<WorkQueue> queue_;
  std::deque<Piece> marked_;
  double outstanding_ = 0;  // sum of the operations of the pieces in `marked_`
  double unmarked_ = 0;     // number of operations after the last mark
};

WorkGate::WorkGate(std::stop_token stop) : stop_(std::move(stop)) {}

WorkGate::WorkGate(c10::Device device, std::stop_token stop)
    : WorkGate(device.is_cpu() ? nullptr : std::make_shared<StreamQueue>(device), std::move(stop)) {
}

WorkGate::WorkGate(std::shared_ptr<WorkQueue> queue, std::stop_token stop)
    : stop_(std::move(stop)),
      backlog_(queue == nullptr ? nullptr : std::make_shared<Backlog>(std::move(queue))) {}

absl::Status WorkGate::Pass(double flops) const {
  if (backlog_ != nullptr && !RequestedStop()) backlog_->Add(flops);
  // Check after the wait, because a stop may have been requested meanwhile.
  return RequestedStop() ? absl::CancelledError("stopped on request") : absl::OkStatus();
}

}  // namespace wan
