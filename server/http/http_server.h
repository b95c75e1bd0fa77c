// An HTTP/1.1 server on one address: it reads requests within limits, passes them to callbacks, and
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

#include "absl/status/statusor.h"
#include "server/calls/admission.h"
#include "server/calls/connection_acceptor.h"
#include "server/config/host_port.h"

namespace wan::server {

class TlsFiles;

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// A request without its body.
struct HttpHead {
  std::string method;  // for example "GET"
  std::string path;    // for example "/v1/videos", percent-encoded as the caller sent it
  std::string query;   // the text after '?'
  // The names of the fields are in lower case. If the request line has an absolute URL, the field
  // "host" has that URL's host.
  HttpFields fields;
  // The caller's address in gRPC's form: "ipv4:192.0.2.7:41234".
  std::string peer;
  // The subject of the client certificate in the form of RFC 2253; empty without one.
  std::string certificate_subject;
  // Size of the body in bytes; nothing if the body is chunked.
  std::optional<uint64_t> body_bytes = 0;

  // Returns all values of a field, in the order in which they came. `name` must be in lower case.
  std::vector<std::string_view> All(std::string_view name) const;
  // Returns the first value of a field; empty if there is none.
  std::string_view First(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  HttpFields fields;
  std::string body;
  // If `stream_bytes` is not 0, `body` is not used: the server sends the body in pieces, and the
  // body has this size in bytes. The server calls `next_piece` on its thread for each piece;
  // `next_piece` must not block, and must pass the piece to `take` once, on any thread. If `take`
  // gets an error, or an empty piece before the end, the server closes the connection. For HEAD,
  // `next_piece` is not called.
  uint64_t stream_bytes = 0;
  using TakePiece = std::function<void(absl::StatusOr<std::string> piece)>;
  std::function<void(TakePiece take)> next_piece = nullptr;
  // If `unsized` is true, the size of the body is not known: `stream_bytes` is not used, and the
  // body ends with an empty piece. The server then closes the connection. If the caller goes away
  // earlier, the server destroys `next_piece` at once, on its thread, and a later piece is dropped.
  bool unsized = false;
  // The lease of the bytes of the body, which is held until the body is sent.
  Admission::Lease place;
};

// Sends the answer of a request. Call the reply once, on any thread.
using HttpReply = std::function<void(HttpAnswer)>;

// Returns whether the caller has closed its connection, or half of it. Call the function on any
// thread, but not after the reply.
using HttpCallerGone = std::function<bool()>;

// Says what to do with a request when its header has been read.
struct HttpEntry {
  // If `refusal` is set, the server sends this answer without reading the body. If there is a body,
  // the server then closes the connection.
  std::optional<HttpAnswer> refusal;
  // The server calls `arrived` on its thread, at least every 64 KiB, with the number of body bytes
  // that have arrived so far, and once when the request is `whole`. `arrived` must not block. To
  // refuse the request, return an answer; the server then closes the connection if more bytes were
  // to come. Null: the size of the body is not limited.
  using Arrived = std::function<std::optional<HttpAnswer>(uint64_t bytes, bool whole)>;
  Arrived arrived;
  // The server calls `work` on its thread if the request is not refused. `work` must not block; it
  // starts the work and makes sure that `reply` is called.
  std::function<void(std::string body, HttpReply reply, HttpCallerGone gone)> work;
};

struct HttpCallbacks {
  // The server calls `enter` on its thread with each valid header; `enter` must not block.
  std::function<HttpEntry(const HttpHead& head)> enter;
  // Returns the answer for a caller that does not speak HTTP (400) or whose header is too large
  // (431).
  std::function<HttpAnswer(int status, std::string_view message)> refuse;
};

struct HttpLimits {
  // Maximum time for a header to arrive, counted from the connection's start or the previous
  // answer.
  std::chrono::milliseconds header_time{30'000};
  // Maximum number of bytes of the fields of a header; the request line may have as many.
  size_t header_bytes = 16 << 10;
  // Maximum time from the end of the header to the end of the body.
  std::chrono::milliseconds body_time{120'000};
  // Maximum time for sending an answer, or one piece of its body.
  std::chrono::milliseconds write_time{60'000};
  // How long the server reads and drops the caller's further bytes after a refusal, so that the
  // refusal arrives.
  std::chrono::milliseconds drop_time{5'000};
};

// One thread serves all connections with non-blocking reads and writes of Boost.Beast
// (docs/design/building.md). A connection may carry any number of requests, one after the other.
// Thread-safe.
class HttpServer {
 public:
  // Listens on the address, but accepts no connection before Start. Fails with UNAVAILABLE, and a
  // message that begins with `setting`, if it cannot listen. Each connection uses the content that
  // the `tls` files have when it begins; null: connections are plain text; `tls` must outlive the
  // server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(std::string_view setting,
                                                            const HostPort& address,
                                                            const ConnectionLimits& connections,
                                                            const HttpLimits& limits,
                                                            TlsFiles* tls);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Calls Stop if nobody has. Destroy every HttpReply and HttpCallerGone before the server, because
  // each holds its connection.
  ~HttpServer();

  // Begins to accept and serve connections. Call Start at most once. `accepting` is handed on to
  // ConnectionAcceptor::Start.
  void Start(HttpCallbacks callbacks, std::function<void(bool)> accepting);

  // Closes all connections. Answers that come later are dropped. Later calls do nothing.
  void Stop();

  // The address on which the server listens, with the actual port.
  const HostPort& address() const;
  ConnectionStats Stats();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
