// Parses and writes the addresses on which the server listens.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

struct HostPort {
  std::string host;  // a name, an IPv4 address or an IPv6 address without brackets, such as "::1"
  int port = 0;      // 0: the system chooses a free port

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// Parses "HOST:PORT", where HOST is a name, an IPv4 address or an IPv6 address in brackets. The
// message of INVALID_ARGUMENT continues a sentence that begins with the setting's name: "is 'x'; it
// must be ...". Does not resolve names.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

// Returns true if only this machine can reach the address: localhost, 127.0.0.0/8 and ::1. Does not
// resolve other names, and returns false for them.
bool IsLoopback(const HostPort& address);

// The inverse of ParseHostPort: "127.0.0.1:80", "[::1]:80".
std::string ToString(const HostPort& address);

}  // namespace wan::server
