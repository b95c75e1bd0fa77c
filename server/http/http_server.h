// An HTTP/1.1 server on one address: reads requests within limits, passes them to callbacks, and
// sends the answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/calls/admission.h"
#include "server/calls/connection_acceptor.h"
#include "server/config/host_port.h"

namespace wan::server {

class TlsFiles;

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// A request without its body.
struct HttpHead {
  std::string method;  // "GET"
  std::string path;    // "/v1/videos", as sent, not decoded
  std::string query;   // text after '?'
  // Names are in lower case. If the request line has an absolute URL, "host" is from the URL.
  HttpFields fields;
  // The caller's address in gRPC's form: "ipv4:192.0.2.7:41234".
  std::string peer;
  // The subject of the client certificate in the form of RFC 2253; empty without one.
  std::string certificate_subject;
  // Size of the body; nothing if it is chunked.
  std::optional<uint64_t> body_bytes = 0;

  // Returns the values of a field in their order. `name` must be in lower case.
  std::vector<std::string_view> All(std::string_view name) const;
  // Returns the first value of a field; empty if there is none.
  std::string_view First(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  HttpFields fields;
  std::string body;
  // If not 0, used instead of `body`: the size of a body in pieces. `next_piece` is called on the
  // server's thread for each piece and must not block; it must pass the piece to `take` once, on
  // any thread. An error, or an empty piece before the end, closes the connection. Not called for
  // HEAD.
  uint64_t stream_bytes = 0;
  using TakePiece = std::function<void(absl::StatusOr<std::string> piece)>;
  std::function<void(TakePiece take)> next_piece = nullptr;
  // The lease of the body's bytes, held until it is sent.
  Admission::Lease place;
};

// Sends the answer of a request. Call it once, on any thread.
using HttpReply = std::function<void(HttpAnswer)>;

// Returns whether the caller has closed its connection, or half of it. Call it on any thread before
// the reply.
using HttpCallerGone = std::function<bool()>;

// What to do with a request whose header has been read.
struct HttpEntry {
  // If set, the answer, sent without reading the body. The connection is closed after it if there
  // is a body.
  std::optional<HttpAnswer> refusal;
  // Called on the server's thread, at least every 64 KiB, with the number of body bytes that have
  // arrived so far, and once when the request is `whole`. Must not block. Return an answer to
  // refuse the request; the connection is closed after it if more was to come. Null: no size limit.
  using Arrived = std::function<std::optional<HttpAnswer>(uint64_t bytes, bool whole)>;
  Arrived arrived;
  // Called on the server's thread if the request is not refused. Starts the work and ensures that
  // `reply` is called. Must not block.
  std::function<void(std::string body, HttpReply reply, HttpCallerGone gone)> work;
};

struct HttpCallbacks {
  // Called on the server's thread with each valid header; must not block.
  std::function<HttpEntry(const HttpHead& head)> enter;
  // Returns the answer to a request that is not HTTP (400) or whose header is too large (431).
  std::function<HttpAnswer(int status, std::string_view message)> refuse;
};

struct HttpLimits {
  // Most time from the connection, or the previous answer, to the end of a header.
  std::chrono::milliseconds header_time{30'000};
  // Most bytes of a header's fields, and also of the request line.
  size_t header_bytes = 16 << 10;
  // Most time from the end of the header to the end of the body.
  std::chrono::milliseconds body_time{120'000};
  // Most time for sending an answer, or a piece of one.
  std::chrono::milliseconds write_time{60'000};
  // How long the caller's further bytes are read and dropped after a refusal, so that the refusal
  // arrives.
  std::chrono::milliseconds drop_time{5'000};
};

// One thread serves all connections with non-blocking reads and writes, using Boost.Beast
// (docs/design/building.md). A connection may carry any number of requests, one after the other.
// Thread-safe.
class HttpServer {
 public:
  // Listens on the address. UNAVAILABLE, with a message that begins with `setting`, if that fails.
  // Each connection uses the content that the `tls` files (null: plain text) have at its begin;
  // `tls` must outlive the server. Accepts no connection before Start.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(std::string_view setting,
                                                            const HostPort& address,
                                                            const ConnectionLimits& connections,
                                                            const HttpLimits& limits,
                                                            TlsFiles* tls);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Calls Stop. Do not call any HttpReply after this.
  ~HttpServer();

  // Begins to serve. Call it once. `accepting` is passed to ConnectionAcceptor::Start.
  void Start(HttpCallbacks callbacks, std::function<void(bool)> accepting);

  // Closes all connections. Later answers are dropped. Idempotent.
  void Stop();

  // The address with the actual port.
  const HostPort& address() const;
  ConnectionStats Stats();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
