// The exchanges between the ranks of a group that compute one forward together.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/exchange_meter.h"

namespace wan {

// An exchange that a rank has begun. A rank that ends with a failure may destroy it without Await.
class PendingExchange {
 public:
  virtual ~PendingExchange() = default;

  // After this, work that the rank queues may read `receive` and change `send`. It waits only for
  // the peers' calls. Call it once, on the rank's thread. Returns the failure of a rank.
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

  // Returns OK or CANCELLED, the same to all ranks, or the failure of a rank. Never waits. Ranks
  // call it before an exchange, so that none is left waiting in one.
  virtual absl::Status Agree() = 0;

  // Begins to copy send[i] to receive[rank()] of rank i, for every i, in parallel to work that is
  // queued afterwards. Before Await nothing may read `receive` or change `send`. Both have an entry
  // for each rank, on this rank's device: contiguous tensors, those of a pair with one shape and
  // dtype; empty ones are allowed, and send[rank()] may be receive[rank()] itself. The host thread
  // waits for the peers' calls; no device does. On a CPU the copies happen in this call. Several
  // may be pending; ranks begin them, and await them, in the same order. Returns the failure of a
  // rank.
  virtual absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
      std::span<const at::Tensor> send, std::span<const at::Tensor> receive) = 0;

  // Begins an exchange and awaits it.
  absl::Status Exchange(std::span<const at::Tensor> send, std::span<const at::Tensor> receive) {
    const absl::StatusOr<std::unique_ptr<PendingExchange>> pending = Start(send, receive);
    return pending.ok() ? (*pending)->Await() : pending.status();
  }
};

// The ends of all ranks of one group.
class CommunicatorGroup {
 public:
  virtual ~CommunicatorGroup() = default;

  virtual int size() const = 0;
  // Returns the end of a rank; it lives as long as the group.
  virtual Communicator& End(int rank) = 0;

  // From now on `meter` counts the rank's bytes to others and its time of waiting for theirs. No
  // rank may be inside a forward. Null: nothing is counted.
  virtual void CountIn(int rank, std::shared_ptr<ExchangeMeter> meter) = 0;

  // Begins a forward, which a request on `stop` ends. No rank may be inside one.
  virtual void Begin(std::stop_token stop) = 0;
  // Lets all ranks leave the forward with `failure`, also those that wait in an exchange. Any
  // thread may call it. The first failure counts.
  virtual void Fail(const absl::Status& failure) = 0;
};

}  // namespace wan
