// Lets a stop request take effect between two pieces of work that are queued on a device.
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

// The queue of the work that a device has to do. Tests replace the queue by a fake.
class WorkQueue {
 public:
  using Mark = std::shared_ptr<void>;

  virtual ~WorkQueue() = default;

  // Returns a mark after all work that has been queued so far.
  virtual Mark MarkEnd() = 0;
  // Blocks until the device has done all work before the mark. If the device is lost, exceptions of
  // LibTorch pass through.
  virtual void Await(const Mark& mark) = 0;
};

// Work that is queued on a GPU cannot be cancelled. So code that queues work calls Pass between two
// pieces. Pass blocks while more than kMostOutstandingFlops operations are queued and not finished.
// After a stop request it returns CANCELLED. After a stop request the device is free after at most
// kMostOutstandingFlops operations, or after the last piece if that piece is larger.
//
// A gate is a handle: its copies share one count of unfinished work. Threads that queue work of the
// same job may call Pass, but only one at a time. Any thread may call RequestedStop.
class WorkGate {
 public:
  // The maximum number of floating-point operations that may be queued and not finished: 0.07 s of
  // work on an H200, 0.25 s on a card with a quarter of its speed. The host queues this much work
  // in about a millisecond, so the device stays busy.
  static constexpr double kMostOutstandingFlops = 4e13;
  // The number of operations between two marks; at this distance, marks cost no measurable time.
  static constexpr double kFlopsBetweenMarks = 1e13;
  // The least number of operations that a piece counts as, because small pieces take as long as
  // their launch or as the copy of their weights.
  static constexpr double kLeastFlops = 2.5e12;

  // Makes a gate that never waits and never stops.
  WorkGate() = default;
  // Makes a gate that never waits, for work that is done when the call that does it returns, as on
  // a CPU. The constructor is implicit, because work on a CPU needs only a stop token.
  WorkGate(std::stop_token stop);  // NOLINT(google-explicit-constructor)
  // Makes a gate for a GPU and the stream that LibTorch uses there in the calling thread.
  WorkGate(c10::Device device, std::stop_token stop);
  WorkGate(std::shared_ptr<WorkQueue> queue, std::stop_token stop);

  // Call Pass between two pieces of work; `flops` is the number of operations that were queued
  // since the last call. The call may wait for the device. Returns CANCELLED after a stop request;
  // then the caller must queue nothing more and return this status.
  absl::Status Pass(double flops = 0) const;

  bool RequestedStop() const { return stop_.stop_requested(); }
  const std::stop_token& stop_token() const { return stop_; }

 private:
  class Backlog;

  std::stop_token stop_;
  std::shared_ptr<Backlog> backlog_;  // null: Pass never waits
};

}  // namespace wan
