// Reads and writes the addresses that the server listens on.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

struct HostPort {
  std::string host;  // a name, "127.0.0.1" or "::1"; IPv6 is without brackets here
  int port = 0;      // 0: the system chooses a free port

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// Reads "HOST:PORT", where HOST is a name, an IPv4 address or an IPv6 address in brackets. The
// message of INVALID_ARGUMENT continues a sentence that begins with the setting's name: "is 'x'; it
// must be ...". Does not resolve names.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

// Tells whether only this machine reaches the address: localhost, 127.0.0.0/8 and ::1. Another name
// is not looked up, and counts as one that others reach.
bool IsLoopback(const HostPort& address);

// Returns the text that ParseHostPort reads: "127.0.0.1:80", "[::1]:80".
std::string ToString(const HostPort& address);

}  // namespace wan::server
