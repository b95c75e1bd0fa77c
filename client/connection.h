// A connection to one wanserve. VideoClient, ModelClient and TelemetryClient make calls over it.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace wan::client {

struct ConnectionOptions {
  // "HOST:PORT"; an IPv6 address in brackets.
  std::string server;
  // How long an attempt to connect may take.
  absl::Duration connect_timeout = absl::Seconds(10);
  // Every call ends by then (DEADLINE_EXCEEDED).
  absl::Time deadline = absl::InfiniteFuture();
};

// Thread-safe. Connects at the first call, and again at a later one if the connection broke; calls
// that were under way then end with UNAVAILABLE. Plain text: TLS, where it is wanted, is for a
// proxy.
class Connection {
 public:
  explicit Connection(ConnectionOptions options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& server() const { return options_.server; }

  // For the clients on top of it.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // Makes one call: prepares its context, cancels it when `stop` is requested, and turns its
  // outcome into a status. `call` runs in this thread and blocks until the call has ended. Without
  // a connection the outcome is UNAVAILABLE, even if the deadline came before connect_timeout.
  absl::Status Call(const std::stop_token& stop,
                    const std::function<grpc::Status(grpc::ClientContext&)>& call) const;

 private:
  const ConnectionOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace wan::client
