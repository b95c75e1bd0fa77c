// A connection to one wanserve. VideoClient, ModelClient and TelemetryClient make calls over it.
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
  // "HOST:PORT"; an IPv6 address stands in brackets.
  std::string server;
  // Limit of one attempt to connect.
  absl::Duration connect_timeout = absl::Seconds(10);
  // A call that has not ended by then ends with DEADLINE_EXCEEDED.
  absl::Time deadline = absl::InfiniteFuture();

  // Speak TLS, and nothing else if that fails. The texts are PEM: the authorities that the server's
  // certificate must come from (empty: those that gRPC finds on the machine), and the client's own
  // certificate and key (both empty: none).
  bool tls = false;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;

  // Sent with every call as 'authorization: Bearer TOKEN'; empty: none.
  std::string token;
  // Send the token to another machine without TLS as well, although others may read it on the way.
  bool allow_plaintext_token = false;

  // The caller's W3C trace context, sent with every call; empty: none. A text with characters that
  // no header may have is left out.
  std::string traceparent;
  std::string tracestate;
};

// FAILED_PRECONDITION if the options have a token that would be sent without TLS to another machine
// and nothing allows that; INVALID_ARGUMENT if the token cannot be a token. Connection::Call checks
// the same, so that no call sends it.
absl::Status CheckToken(const ConnectionOptions& options);

// Thread-safe. The first call connects. When the connection breaks, the calls that are under way
// end with UNAVAILABLE, and the next call connects again: a call never fails because an earlier one
// could not connect.
class Connection {
 public:
  explicit Connection(ConnectionOptions options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  const std::string& server() const { return options_.server; }
  // The options, for a second connection to another server of the same user.
  const ConnectionOptions& options() const { return options_; }

  // Makes one call, for the clients on top of this class: prepares its context, cancels it when
  // `stop` is requested, and turns its outcome into a status. `call` runs in the caller's thread,
  // makes the call over the channel that it is given, and blocks until the call has ended. Without
  // a connection the outcome is UNAVAILABLE, even if the deadline came before connect_timeout; it
  // is UNAVAILABLE as well if a proxy has cut the stream.
  absl::Status Call(const std::stop_token& stop,
                    const std::function<grpc::Status(const std::shared_ptr<grpc::Channel>&,
                                                     grpc::ClientContext&)>& call) const;

 private:
  // The channel for the next call; a new one if the present one has failed to connect.
  std::shared_ptr<grpc::Channel> ChannelForCall() const ABSL_LOCKS_EXCLUDED(mutex_);

  const ConnectionOptions options_;
  mutable absl::Mutex mutex_;
  mutable std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::client
