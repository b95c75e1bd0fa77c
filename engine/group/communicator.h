// Exchanges tensors between the ranks that compute one forward together.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/exchange_meter.h"

namespace wan {

// An exchange that a rank has begun. A rank that fails may destroy it without Await.
class PendingExchange {
 public:
  virtual ~PendingExchange() = default;

  // After this call, work that the rank queues may read `receive` and change `send`. The host waits
  // only for the peers' calls. Call it once, on the rank's thread. Fails with the failure of any
  // rank.
  virtual absl::Status Await() = 0;
};

// One rank's view of the group. A rank is a device and the thread that queues its work; all threads
// are in one process. Every rank makes the same calls in the same order, on its own thread.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // The rank's number, from 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns OK or CANCELLED, the same on all ranks, or a rank's failure. Never waits. Ranks call it
  // before an exchange, so that no rank is left waiting there.
  virtual absl::Status Agree() = 0;

  // Begins to copy send[i] to receive[rank()] of rank i, for every i, in parallel to work that is
  // queued later. Until Await, nothing may read `receive` or change `send`. Both have one entry per
  // rank, contiguous and on this rank's device; sender and receiver use the same shape and dtype.
  // Entries may be empty, and send[rank()] may be receive[rank()]. The host thread waits for the
  // peers' calls, but no device waits. On a CPU this call makes the copies. Several exchanges may
  // be pending; all ranks begin and await them in the same order. Fails with the failure of any
  // rank.
  virtual absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
      std::span<const at::Tensor> send, std::span<const at::Tensor> receive) = 0;

  // Begins an exchange and awaits it.
  absl::Status Exchange(std::span<const at::Tensor> send, std::span<const at::Tensor> receive) {
    const absl::StatusOr<std::unique_ptr<PendingExchange>> pending = Start(send, receive);
    return pending.ok() ? (*pending)->Await() : pending.status();
  }
};

// The communicators of all ranks of one group.
class CommunicatorGroup {
 public:
  virtual ~CommunicatorGroup() = default;

  virtual int size() const = 0;
  // Returns a rank's communicator; it lives as long as the group.
  virtual Communicator& End(int rank) = 0;

  // From now on `meter` counts the bytes that the rank sends and the time that it waits; null:
  // nothing is counted. No rank may be inside a forward.
  virtual void CountIn(int rank, std::shared_ptr<ExchangeMeter> meter) = 0;

  // Begins a forward, which a stop request on `stop` ends. No rank may be inside one.
  virtual void Begin(std::stop_token stop) = 0;
  // Makes all ranks leave the forward with `failure`, including those that wait in an exchange. Any
  // thread may call it. The first failure wins.
  virtual void Fail(const absl::Status& failure) = 0;
};

}  // namespace wan
