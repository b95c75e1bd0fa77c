// What the wire of the server holds and has refused, for a scrape.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wan::server {

struct WireStats {
  int connections = 0;
  int connections_limit = 0;
  // Connections that were closed at once since the start, by reason: "address" (too many from one
  // address), "total" (too many in all), "descriptors" (the process has none left).
  std::map<std::string, int64_t> refused_connections;
  // Descriptors of the process; 0: not known.
  int64_t descriptors = 0;
  int64_t descriptors_limit = 0;
  // Bytes of requests that are read or worked on.
  int64_t request_bytes = 0;
  int64_t request_bytes_limit = 0;
  // Open streams of every kind, and the downloads among them.
  int streams = 0;
  int streams_limit = 0;
  int downloads = 0;
  int downloads_limit = 0;
  // Calls that were refused since the start because the server had too much under way, by reason:
  // "requests" (bytes of requests), "streams", "downloads".
  std::map<std::string, int64_t> refused_calls;
};

}  // namespace wan::server
