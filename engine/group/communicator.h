// Exchanges tensors between ranks that compute one forward together.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/exchange_meter.h"

namespace wan {

// An exchange of tensors that a rank has begun. If the rank fails, it may destroy the object
// without calling Await.
class PendingExchange {
 public:
  virtual ~PendingExchange() = default;

  // Work that the rank queues after this call may read `receive` and change `send`. The host waits
  // only until the peers have made their calls. Call Await only once, on the rank's thread. If any
  // rank fails, returns that failure.
  virtual absl::Status Await() = 0;
};

// The view that one rank has of its group. A rank is a device and the thread that queues the
// device's work. All threads are in one process. Every rank makes the same calls in the same order,
// each on its own thread.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // The rank's number, from 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns OK, CANCELLED or the failure of a rank; the result is the same on all ranks. The call
  // never waits. Ranks call Agree before an exchange, so that no rank waits in the exchange for a
  // rank that has left the forward.
  virtual absl::Status Agree() = 0;

  // For every i, begins to copy send[i] to receive[rank()] of rank i. The copies run in parallel to
  // work that is queued later. Until Await returns, no work may read `receive` or change `send`.
  // `send` and `receive` have one entry per rank; entries are contiguous and on this rank's device.
  // Sender and receiver use the same shape and dtype. Entries may be empty, and send[rank()] may be
  // the same tensor as receive[rank()]. The thread of the host waits until the peers have made
  // their calls, but no device waits. On a CPU, the call itself makes the copies. Several exchanges
  // may be pending. All ranks must begin and await the pending exchanges in the same order. If any
  // rank fails, returns that failure.
  virtual absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
      std::span<const at::Tensor> send, std::span<const at::Tensor> receive) = 0;

  // Begins an exchange and waits for it.
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
  // Returns the communicator of a rank, which lives as long as the group.
  virtual Communicator& End(int rank) = 0;

  // From now on `meter` counts the bytes that rank `rank` sends and the time that it waits; null:
  // nobody counts them. No rank may be inside a forward during the call.
  virtual void CountIn(int rank, std::shared_ptr<ExchangeMeter> meter) = 0;

  // Begins a forward; a stop request on `stop` will end it. No rank may be inside another forward.
  virtual void Begin(std::stop_token stop) = 0;
  // Makes all ranks leave the forward with the status `failure`. Fail wakes ranks that wait in an
  // exchange. Any thread may call Fail. If Fail is called several times, the first failure counts.
  virtual void Fail(const absl::Status& failure) = 0;
};

}  // namespace wan
