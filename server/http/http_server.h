// An HTTP/1.1 server on an address: reads requests within limits, passes them to a handler, and
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
  std::string path;    // "/v1/videos", as it was sent: not decoded
  std::string query;   // what follows '?'
  // With names in lower case. Where the request line has a whole URL, the host is that of the URL.
  HttpFields fields;
  // The caller's address as gRPC writes it: "ipv4:192.0.2.7:41234".
  std::string peer;
  // The subject of the connection's client certificate as RFC 2253 has it; empty without one.
  std::string certificate_subject;
  // Nothing if the header does not say it, because the body comes in chunks.
  std::optional<uint64_t> body_bytes = 0;

  // The values of a field, in their order. `name` is in lower case.
  std::vector<std::string_view> All(std::string_view name) const;
  // Its first value; empty if there is none.
  std::string_view First(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  HttpFields fields;
  std::string body;
  // In place of `body`: as many bytes in pieces. Each call asks for the next one, on the server's
  // thread, and must not block; `take` gets it, on any thread, once. An error, or an empty piece
  // before the end, cuts the connection. Answers to HEAD, which are sent without their body, need
  // no pieces.
  uint64_t stream_bytes = 0;
  using TakePiece = std::function<void(absl::StatusOr<std::string> piece)>;
  std::function<void(TakePiece take)> next_piece = nullptr;
  // The lease of the body's bytes, held until it is sent.
  Admission::Lease place;
};

// Sends the answer of a request. Any thread, once.
using HttpReply = std::function<void(HttpAnswer)>;

// Whether the caller has closed its connection, or half of it. Any thread, before the reply.
using HttpCallerGone = std::function<bool()>;

// The decision about a request whose header has been read.
struct HttpEntry {
  // The answer, without reading the body; the connection ends with it if there is one.
  std::optional<HttpAnswer> refusal;
  // Called on the server's thread, and must not block, when `bytes` of the body have arrived in
  // all, never more than 64 KiB after the call before, and once the request is whole. An answer
  // refuses it; the connection ends with that if there is more to come. May be null: every size is
  // taken then.
  using Arrived = std::function<std::optional<HttpAnswer>(uint64_t bytes, bool whole)>;
  Arrived arrived;
  // Otherwise it starts the work on the request and ensures that `reply` is called. Called on the
  // server's thread, and must not block.
  std::function<void(std::string body, HttpReply reply, HttpCallerGone gone)> work;
};

struct HttpCallbacks {
  // Called with each header that could be read, on the server's thread; must not block.
  std::function<HttpEntry(const HttpHead& head)> enter;
  // Returns the answer to a request that is not HTTP (400) or whose header is too large (431).
  std::function<HttpAnswer(int status, std::string_view message)> refuse;
};

struct HttpLimits {
  // Most time from the connection, or from the answer before, to the last byte of a header.
  std::chrono::milliseconds header_time{30'000};
  // Most bytes of a header's fields; the request line may have as many again.
  size_t header_bytes = 16 << 10;
  // Most time from the end of the header to the last byte of the body.
  std::chrono::milliseconds body_time{120'000};
  // Most time in which the reader takes a body, or a piece of one, that is sent to it.
  std::chrono::milliseconds write_time{60'000};
  // Time for which the caller's further bytes are dropped after a refusal, so that the refusal
  // arrives.
  std::chrono::milliseconds drop_time{5'000};
};

// One thread reads and writes for all connections, and none of them blocks another. Boost.Beast
// speaks HTTP (docs/design/building.md). A connection may carry any number of requests, one after
// the other. Thread-safe.
class HttpServer {
 public:
  // Takes the address. UNAVAILABLE, beginning with `setting`, if it cannot be had. With `tls`
  // (null: plain text) connections use what the files hold when they begin. The files must
  // outlive the server. Nothing is accepted before Start.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(std::string_view setting,
                                                            const HostPort& address,
                                                            const ConnectionLimits& connections,
                                                            const HttpLimits& limits,
                                                            TlsFiles* tls);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Stops. No answer may be sent any more.
  ~HttpServer();

  // Begins to serve. `accepting` is ConnectionAcceptor::Start's. Called once.
  void Start(HttpCallbacks callbacks, std::function<void(bool)> accepting);

  // Ends every connection. Answers that come later are dropped. Idempotent.
  void Stop();

  // With the port that was taken.
  const HostPort& address() const;
  ConnectionStats Stats();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
