// Figures about the gRPC and HTTP ports: open connections and calls, limits, refusals.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wan::server {

struct WireStats {
  int connections = 0;
  int connections_limit = 0;
  // Number of connections closed on arrival since the start, by reason: "address" (too many from
  // one address), "total" (too many in total), "descriptors" (no file descriptor was left).
  std::map<std::string, int64_t> refused_connections;
  // Number of file descriptors that the process has open, and their limit; 0: unknown.
  int64_t descriptors = 0;
  int64_t descriptors_limit = 0;
  // Bytes of large messages, over gRPC and HTTP: requests that are being worked on, and answers and
  // stream messages that are not sent yet.
  int64_t request_bytes = 0;
  int64_t request_bytes_limit = 0;
  int64_t answer_bytes = 0;
  int64_t answer_bytes_limit = 0;
  // Number of open streams of all kinds; downloads also count as streams.
  int64_t streams = 0;
  int64_t streams_limit = 0;
  int64_t downloads = 0;
  int64_t downloads_limit = 0;
  // Number of calls refused since the start because the server was too busy, by reason: "requests"
  // (too many, or too many bytes), "answers" (too many bytes), "streams", "downloads", "public"
  // (any reason, for calls that need no credentials).
  std::map<std::string, int64_t> refused_calls;
  // Number of connections closed since the start because the caller broke a rule of HTTP/2, by
  // NameOf(Http2Rule).
  std::map<std::string, int64_t> misused_connections;
};

}  // namespace wan::server
