// Where a stop request is heard while a device works: between two pieces of the work that is
// queued.
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

// The queue on which a device computes, as the gate needs it; injected by tests.
class WorkQueue {
 public:
  using Mark = std::shared_ptr<void>;

  virtual ~WorkQueue() = default;

  // The end of what is queued now.
  virtual Mark MarkEnd() = 0;
  // Returns when the device has done all that was queued before the mark. Throws what LibTorch
  // throws, for a lost device for instance.
  virtual void Await(const Mark& mark) = 0;
};

// A GPU works on a queue, and nothing that is queued can be called back: a host that queued a whole
// forward could only wait for it. So whoever queues work passes the gate between two pieces of it.
// The gate holds the host back while more than kMostOutstandingFlops wait on the device, and ends
// the work with CANCELLED once a stop was requested. The device then is free as soon as it has done
// what was outstanding: at most that many operations, or the last piece if that alone has more.
//
// A gate is a handle: copies share what is outstanding. The threads that queue work of one job pass
// it one at a time; RequestedStop is for any thread.
class WorkGate {
 public:
  // What may wait on the device, in floating-point operations: 0.07 s of work on an H200, 0.25 s on
  // a card of a quarter of its speed. The host needs about a millisecond to queue as much, so that
  // no device runs out of work.
  static constexpr double kMostOutstandingFlops = 4e13;
  // Marks are this far apart, so that they cost nothing that can be measured.
  static constexpr double kFlopsBetweenMarks = 1e13;
  // A piece counts as this many operations at least: small ones take the time of launching them, or
  // of the weights' way to the device.
  static constexpr double kLeastFlops = 2.5e12;

  // Never waits and never stops.
  WorkGate() = default;
  // Never waits: for work that is done when the call that asks for it returns, as on a CPU.
  // Implicit, because a stop token is all that such work needs.
  WorkGate(std::stop_token stop);  // NOLINT(google-explicit-constructor)
  // Waits on GPUs, with the stream on which LibTorch computes for the calling thread.
  WorkGate(c10::Device device, std::stop_token stop);
  WorkGate(std::shared_ptr<WorkQueue> queue, std::stop_token stop);

  // Between two pieces of work; `flops` is the work queued since the last call. CANCELLED after a
  // stop request: the caller queues nothing more and returns the status. May wait for the device.
  absl::Status Pass(double flops = 0) const;

  bool RequestedStop() const { return stop_.stop_requested(); }
  const std::stop_token& stop_token() const { return stop_; }

 private:
  class Backlog;

  std::stop_token stop_;
  std::shared_ptr<Backlog> backlog_;  // null: nothing ever waits
};

}  // namespace wan
