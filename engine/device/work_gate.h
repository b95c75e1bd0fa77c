// Lets a stop request end work on a device between two queued pieces of it.
//
//   const WorkGate gate(device, stop);
//   for (const Block& block : blocks) {
//     Queue(block);
//     if (absl::Status status = gate.Pass(FlopsOf(block)); !status.ok()) return status;
//   }
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <stop_token>

#include "absl/status/status.h"

namespace wan {

// The queue on which a device computes. Tests inject their own.
class WorkQueue {
 public:
  using Mark = std::shared_ptr<void>;

  virtual ~WorkQueue() = default;

  // Returns a mark after the work that is queued now.
  virtual Mark MarkEnd() = 0;
  // Blocks until the device has done all work before the mark. Throws what LibTorch throws, for
  // example if the device is lost.
  virtual void Await(const Mark& mark) = 0;
};

// Queued GPU work cannot be cancelled: a host that has queued a whole forward can only wait for it.
// So code that queues work calls Pass between two pieces. The gate blocks while more than
// kMostOutstandingFlops wait on the device, and returns CANCELLED once a stop was requested. The
// device is then free as soon as it has done the outstanding work: at most that many operations, or
// the last piece if that alone has more.
//
// A gate is a handle: copies share the account of outstanding work. The threads that queue work of
// one job may call Pass one at a time; any thread may call RequestedStop.
class WorkGate {
 public:
  // Most floating-point operations that may wait on the device: 0.07 s of work on an H200, 0.25 s
  // on a card with a quarter of its speed. The host queues as much in about a millisecond, so the
  // device does not run out of work.
  static constexpr double kMostOutstandingFlops = 4e13;
  // Operations between two marks: so few marks cost no measurable time.
  static constexpr double kFlopsBetweenMarks = 1e13;
  // Each piece counts as at least this many operations, because small pieces take the time of their
  // launch, or of their weights' copy.
  static constexpr double kLeastFlops = 2.5e12;

  // A gate that never waits and never stops.
  WorkGate() = default;
  // A gate that never waits, for work that is done when its call returns, as on a CPU. Implicit,
  // because such work needs a stop token and no more.
  WorkGate(std::stop_token stop);  // NOLINT(google-explicit-constructor)
  // A gate that waits for a GPU, on the stream on which LibTorch computes for the calling thread.
  WorkGate(c10::Device device, std::stop_token stop);
  WorkGate(std::shared_ptr<WorkQueue> queue, std::stop_token stop);

  // Call it between two pieces of work; `flops` is the work that was queued since the last call.
  // May wait for the device. Returns CANCELLED after a stop request; the caller then queues nothing
  // more and returns the status.
  absl::Status Pass(double flops = 0) const;

  bool RequestedStop() const { return stop_.stop_requested(); }
  const std::stop_token& stop_token() const { return stop_; }

 private:
  class Backlog;

  std::stop_token stop_;
  std::shared_ptr<Backlog> backlog_;  // null: nothing ever waits
};

}  // namespace wan
