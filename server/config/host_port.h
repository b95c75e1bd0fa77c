// Addresses to listen on.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

struct HostPort {
  std::string host;  // a name, "127.0.0.1" or "::1": IPv6 without its brackets
  int port = 0;      // 0: any free one

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// "HOST:PORT", where HOST is a name, an IPv4 address or an IPv6 address in brackets.
// INVALID_ARGUMENT says what would be right.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

// "127.0.0.1:80", "[::1]:80".
std::string ToString(const HostPort& address);

}  // namespace wan::server
