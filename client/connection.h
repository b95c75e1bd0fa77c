// A connection to a wanserve server, over which VideoClient and the other clients make calls.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace wan::client {

struct ConnectionOptions {
  // "HOST:PORT"; an IPv6 address must be in brackets.
  std::string server;
  // Maximum time for one attempt to connect.
  absl::Duration connect_timeout = absl::Seconds(10);
  // Calls that have not ended at this time end with DEADLINE_EXCEEDED.
  absl::Time deadline = absl::InfiniteFuture();

  // Whether connections use TLS. The following texts are PEM: the authorities that sign the
  // server's certificate (empty: those that gRPC finds on the machine), and the client's
  // certificate and key (both empty: the client has no certificate).
  bool tls = false;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;

  // The token that every call sends as 'authorization: Bearer TOKEN'; empty: no token is sent.
  std::string token;
  // Allows sending the token to another machine without TLS, although others could intercept it.
  bool allow_plaintext_token = false;

  // The W3C trace context of the caller, which every call sends; empty: no context is sent. A
  // context with characters that a header must not have is left out.
  std::string traceparent;
  std::string tracestate;
};

// Returns FAILED_PRECONDITION if the token would be sent to another machine without TLS and
// allow_plaintext_token is not set; INVALID_ARGUMENT if the token has invalid characters.
// Connection::Call makes the same check.
absl::Status CheckToken(const ConnectionOptions& options);

// Thread-safe. The first call makes the connection. When the connection breaks, running calls end
// with UNAVAILABLE; the next call connects again, even if an earlier attempt to connect has failed.
class Connection {
 public:
  explicit Connection(ConnectionOptions options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  const std::string& server() const { return options_.server; }
  // Returns the options, for example to connect to another server with the same credentials.
  const ConnectionOptions& options() const { return options_; }

  // Makes one call for one of the clients: prepares the call's context, cancels the call when
  // `stop` is requested, and returns the call's status. `call` runs on the caller's thread, makes
  // the call over the given channel, and blocks until it has ended. Returns UNAVAILABLE if there is
  // no connection (even if the deadline passes before connect_timeout), or if a proxy has cut the
  // stream.
  absl::Status Call(const std::stop_token& stop,
                    const std::function<grpc::Status(const std::shared_ptr<grpc::Channel>&,
                                                     grpc::ClientContext&)>& call) const;

 private:
  // Returns the channel for the next call; a new one if the current one has failed to connect.
  std::shared_ptr<grpc::Channel> ChannelForCall() const ABSL_LOCKS_EXCLUDED(mutex_);

  const ConnectionOptions options_;
  mutable absl::Mutex mutex_;
  mutable std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::client
