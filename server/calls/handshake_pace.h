// Limits how fast the connections of one address begin their TLS handshakes. A handshake costs the
// server a signature, about a millisecond of the thread that serves all new connections of a port,
// and costs its caller next to nothing.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/token_bucket.h"

namespace wan::server {

// Use a HandshakePace on one thread only.
class HandshakePace {
 public:
  // The number of handshakes of an address that begin at once, and the number that begin each
  // second; `debt` handshakes may wait.
  static constexpr TokenBucket::Options kOfAddress{.most = 100, .per_second = 200, .debt = 2'000};

  explicit HandshakePace(const Clock& clock, const TokenBucket::Options& of_address = kOfAddress)
      : clock_(clock), of_address_(of_address) {}

  // Counts a new connection and returns how long its handshake must wait, which is zero unless its
  // address makes many. Nullopt: too many connections wait already, so close this one. `address` is
  // the result of NetworkOf.
  std::optional<absl::Duration> Take(const std::string& address);

 private:
  const Clock& clock_;
  const TokenBucket::Options of_address_;
  std::unordered_map<std::string, TokenBucket> addresses_;
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
