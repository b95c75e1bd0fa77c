// Parses the target of an HTTP request line, for example "/v1/videos?limit=5".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

struct RequestTarget {
  std::string host;   // "localhost:8000" if the target is an absolute URL; otherwise empty
  std::string path;   // "/v1/videos", percent-encoded as the caller sent it
  std::string query;  // the text after '?'
};

// Parses "/PATH?QUERY", or an absolute URL, which every server must accept (RFC 9112,
// absolute-form). Returns nothing for a URL without a host or with a user. Returns other forms,
// such as "*", as the path.
std::optional<RequestTarget> ParseRequestTarget(std::string_view target);

}  // namespace wan::server
