#include "server/config/host_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

absl::Status Malformed(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", std::string(text),
      "'; must be HOST:PORT with a port from 0 (a free one is chosen) to 65535, for example "
      "127.0.0.1:50051, 0.0.0.0:50051 or [::1]:50051"));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  HostPort parsed;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.port);
  if (error != std::errc() || end != digits.data() + digits.size() || parsed.port < 0 ||
      parsed.port > 65535) {
    return Malformed(text);
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_of("[] \t/,") != std::string_view::npos) {
    return Malformed(text);
  }
  if (bracketed != (host.find(':') != std::string_view::npos)) return Malformed(text);
  parsed.host = std::string(host);
  return parsed;
}

bool IsLoopback(const HostPort& address) {
  if (address.host == "localhost") return true;
  in_addr v4 = {};
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  in6_addr v6 = {};
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string ToString(const HostPort& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return absl::StrCat(ipv6 ? "[" : "", address.host, ipv6 ? "]:" : ":", address.port);
}

}  // namespace wan::server
