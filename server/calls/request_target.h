// Parses the target of an HTTP request line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

struct RequestTarget {
  std::string host;   // "localhost:8000" of a whole URL; empty if only the path was sent
  std::string path;   // "/v1/videos", as it was sent: not decoded
  std::string query;  // what follows '?'
};

// Reads "/PATH?QUERY", or the whole URL that clients send to a proxy and every server must accept
// (RFC 9112, absolute-form). Nothing for a URL that has no host, or a user. Other forms, such as
// "*", are paths that no server has.
std::optional<RequestTarget> ParseRequestTarget(std::string_view target);

}  // namespace wan::server
