// What the ranks of a group say to each other while they compute one forward together.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/exchange_meter.h"

namespace wan {

// What a rank has begun to exchange with the others. May be destroyed without Await, by a rank that
// ends with a failure.
class PendingExchange {
 public:
  virtual ~PendingExchange() = default;

  // What the rank queues from now on reads `receive`, and may change `send`. It waits for the
  // peers' calls, and nothing else. Call it once, on the rank's thread. Returns what a rank failed
  // with.
  virtual absl::Status Await() = 0;
};

// One rank's end of the group. A rank is a device with the thread that queues its work; all threads
// belong to one process. Every rank makes the same calls in the same order, on its own thread.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // From 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns OK or CANCELLED, the same to all ranks, or what a rank failed with. Waits for nobody.
  // Ranks call it before an exchange, so that none is left waiting in one.
  virtual absl::Status Agree() = 0;

  // Begins to copy send[i] to receive[rank()] of rank i, for every i, beside what is queued after
  // it: before Await nothing may read `receive` or change `send`. Both have an entry for each rank,
  // on this rank's device: contiguous tensors, those of a pair with one shape and dtype; empty ones
  // are allowed, and send[rank()] may be receive[rank()] itself. The caller waits for the peers'
  // calls; no device waits for a call. On a CPU everything is copied here. Several may be pending;
  // ranks begin them, and await them, in the same order. Returns what a rank failed with.
  virtual absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
      std::span<const at::Tensor> send, std::span<const at::Tensor> receive) = 0;

  // Starts an exchange and awaits it.
  absl::Status Exchange(std::span<const at::Tensor> send, std::span<const at::Tensor> receive) {
    const absl::StatusOr<std::unique_ptr<PendingExchange>> pending = Start(send, receive);
    return pending.ok() ? (*pending)->Await() : pending.status();
  }
};

// All ends of one group.
class CommunicatorGroup {
 public:
  virtual ~CommunicatorGroup() = default;

  virtual int size() const = 0;
  // The end of a rank. It lives as long as the group.
  virtual Communicator& End(int rank) = 0;

  // From now on counts what the rank sends to the others, and its waiting for what they send. No
  // rank may be inside a forward. Null: nobody asks.
  virtual void CountIn(int rank, std::shared_ptr<ExchangeMeter> meter) = 0;

  // Begins a forward, which a request on `stop` ends. No rank may be inside one.
  virtual void Begin(std::stop_token stop) = 0;
  // Lets all ranks leave the forward with `failure`, also those that wait in an exchange. Any
  // thread may call it. The first failure counts.
  virtual void Fail(const absl::Status& failure) = 0;
};

}  // namespace wan
