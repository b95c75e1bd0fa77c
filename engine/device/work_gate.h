// Lets a stop request take effect between two pieces of queued device work.
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

// The queue of a device's work. Tests inject their own.
class WorkQueue {
 public:
  using Mark = std::shared_ptr<void>;

  virtual ~WorkQueue() = default;

  // Returns a mark after all work queued so far.
  virtual Mark MarkEnd() = 0;
  // Blocks until all work before the mark is done. Throws what LibTorch throws, for example if the
  // device is lost.
  virtual void Await(const Mark& mark) = 0;
};

// Queued GPU work cannot be cancelled, so code that queues work calls Pass between two pieces. The
// gate blocks while more than kMostOutstandingFlops are queued and not done, and returns CANCELLED
// after a stop request. The device is then free after at most that much work, or after the last
// piece if that is larger.
//
// A gate is a handle: copies share one count of outstanding work. Threads that queue work of one
// job may call Pass, one at a time; any thread may call RequestedStop.
class WorkGate {
 public:
  // Most floating-point operations queued and not done: 0.07 s of work on an H200, 0.25 s on a card
  // a quarter as fast. The host queues as much in about a millisecond, so the device stays busy.
  static constexpr double kMostOutstandingFlops = 4e13;
  // Operations between two marks; marks this rare cost no measurable time.
  static constexpr double kFlopsBetweenMarks = 1e13;
  // Each piece counts as at least this many operations, because small ones take as long as their
  // launch or their weights' copy.
  static constexpr double kLeastFlops = 2.5e12;

  // A gate that never waits and never stops.
  WorkGate() = default;
  // A gate that never waits, for work that is done when its call returns, for example on a CPU.
  // Implicit, because such work needs only a stop token.
  WorkGate(std::stop_token stop);  // NOLINT(google-explicit-constructor)
  // A gate for a GPU, for the stream that LibTorch uses in the calling thread.
  WorkGate(c10::Device device, std::stop_token stop);
  WorkGate(std::shared_ptr<WorkQueue> queue, std::stop_token stop);

  // Call it between two pieces of work; `flops` is the work queued since the last call. May wait
  // for the device. Returns CANCELLED after a stop request; the caller must then queue nothing more
  // and return the status.
  absl::Status Pass(double flops = 0) const;

  bool RequestedStop() const { return stop_.stop_requested(); }
  const std::stop_token& stop_token() const { return stop_; }

 private:
  class Backlog;

  std::stop_token stop_;
  std::shared_ptr<Backlog> backlog_;  // null: Pass never waits
};

}  // namespace wan
