// Limits what all connections of one address together ask of gRPC.
//
// The limits of a connection multiply with the connections that an address may have. These do not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/token_bucket.h"

namespace wan::server {

struct AddressLimits {
  // Calls that gRPC works on, over all connections; each takes gRPC 11 KiB or more. One address may
  // have as many as are left for others, so at most half of them, and a newcomer finds room.
  int unanswered = 32'768;
  // Calls of an address that may be reset, or left behind by the end of their connection, before
  // they were answered. All streams that the server allows may end at once
  // (docs/operate/limits.md), and gRPC forgets several times as many a second on two cores. An
  // address in debt gets its next connection when the debt is paid, after 4 seconds at most.
  TokenBucket::Options resets{.most = 16'384, .per_second = 2'000, .debt = 8'000};
};

// Thread-safe.
class AddressBudgets {
  struct Address;

 public:
  // The clock must outlive the object.
  AddressBudgets(const AddressLimits& limits, Clock& clock);
  AddressBudgets(const AddressBudgets&) = delete;
  AddressBudgets& operator=(const AddressBudgets&) = delete;

  // One connection's part. It goes before the budgets; the calls that it has then count as reset.
  class Part {
   public:
    Part(AddressBudgets& budgets, std::shared_ptr<Address> address);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part();

    // Reports the connection's open calls, and the resets since the last report. Returns "" or a
    // sentence about the exceeded limit, for the author of the client.
    std::string Tell(int unanswered, int resets);

    // Whether a line of the log about this address is due: once in a minute.
    bool MayLog();

   private:
    AddressBudgets& budgets_;
    const std::shared_ptr<Address> address_;
    int unanswered_ = 0;
  };
  // `address` is NetworkOf the caller.
  std::unique_ptr<Part> Join(const std::string& address);

  // Returns the time until the address may have its next connection.
  absl::Duration DebtOf(const std::string& address);

  // The number of addresses that are remembered.
  size_t size() const;

 private:
  std::shared_ptr<Address> Find(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AddressLimits limits_;
  const Clock& clock_;
  mutable absl::Mutex mutex_;
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, std::shared_ptr<Address>> addresses_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
