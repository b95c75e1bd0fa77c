// Limits what all connections of one address together ask of gRPC. The limits of one connection
// (Http2Limits) do not suffice: an address may have many connections.
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
  // Most unanswered calls of all connections; gRPC uses 11 KiB or more for each. One address may
  // have at most as many as it leaves for others, so at most half.
  int unanswered = 32'768;
  // Most calls of an address that are reset, or lost with their connection, before they are
  // answered. `most` allows all streams of a server (docs/operate/limits.md) to end at once; gRPC
  // on two cores cleans up several times `per_second`. An address in debt gets its next connection
  // when the debt is paid, after at most 4 seconds.
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

  // The account of one connection. Destroy it before the budgets. Calls that are unanswered at its
  // destruction count as reset.
  class Part {
   public:
    Part(AddressBudgets& budgets, std::shared_ptr<Address> address);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part();

    // Reports the connection's unanswered calls, and its resets since the last report. Returns "",
    // or a sentence for the client's author about the exceeded limit.
    std::string Tell(int unanswered, int resets);

    // Whether the log may get a line about this address: at most one a minute.
    bool MayLog();

   private:
    AddressBudgets& budgets_;
    const std::shared_ptr<Address> address_;
    int unanswered_ = 0;
  };
  // `address` is the result of NetworkOf.
  std::unique_ptr<Part> Join(const std::string& address);

  // Returns the time until the address may have its next connection.
  absl::Duration DebtOf(const std::string& address);

  // Number of remembered addresses.
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
