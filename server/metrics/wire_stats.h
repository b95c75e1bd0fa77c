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
};

}  // namespace wan::server
