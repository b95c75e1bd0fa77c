// Limits the gRPC calls that all connections of one network address together may make. The limits
// of one connection (Http2Limits) do not suffice: an address may have many connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/token_bucket.h"

namespace wan::server {

struct AddressLimits {
  // Maximum number of unanswered calls of all connections together; each call costs gRPC 11 KiB of
  // memory or more. One address may have no more unanswered calls than are left for the other
  // addresses, so at most half of all.
  int unanswered = 32'768;
  // Maximum number of calls of one address that end before they are answered, because they are
  // reset or their connection is lost. `most` is large enough for all streams of a server
  // (docs/operate/limits.md) to end at once; on two cores gRPC can clean up several times
  // `per_second`. An address that exceeds the limit is in debt; its next connection waits until the
  // debt is paid, at most 4 seconds.
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

  // The calls of one connection, which are charged to its address. Destroy the Part before the
  // AddressBudgets object. Calls that are still unanswered when it is destroyed count as reset.
  class Part {
   public:
    Part(AddressBudgets& budgets, std::shared_ptr<Address> address);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part();

    // Reports the connection's unanswered calls, and its resets since the last report. Returns "",
    // or a sentence that tells the author of the client which limit was exceeded.
    std::string Tell(int unanswered, int resets);

    // Whether to log a line about this address now; true at most once a minute.
    bool MayLog();

   private:
    AddressBudgets& budgets_;
    const std::shared_ptr<Address> address_;
    int unanswered_ = 0;
  };
  // Registers a new connection; `address` is the result of NetworkOf.
  std::unique_ptr<Part> Join(const std::string& address);

  // Returns how long the next connection of the address must wait.
  absl::Duration DebtOf(const std::string& address);

  // Number of addresses that have an entry.
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
