// One address where gRPC listens, with the services that it offers there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/calls/connection_acceptor.h"
#include "server/calls/connection_relay.h"
#include "server/config/host_port.h"

namespace grpc {
class Server;
class Service;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace wan::server {

// Thread-safe.
class GrpcPort {
 public:
  // Takes the address. UNAVAILABLE, beginning with `setting`, if it cannot be had. Nothing is
  // accepted before Start. The objects in the relay's options must outlive the port; the limit of
  // streams is set here.
  static absl::StatusOr<std::unique_ptr<GrpcPort>> Listen(std::string_view setting,
                                                          const HostPort& address,
                                                          const ConnectionLimits& limits,
                                                          RelayOptions relay);
  GrpcPort(const GrpcPort&) = delete;
  GrpcPort& operator=(const GrpcPort&) = delete;
  // Stops.
  ~GrpcPort();

  struct Callbacks {
    std::function<void(bool)> accepting;                   // ConnectionAcceptor::Start's
    std::function<void(const RefusedCaller&)> on_refused;  // ConnectionRelay::Callbacks'
  };
  // Begins to serve. The services must outlive the port. Called once.
  absl::Status Start(const std::vector<grpc::Service*>& services, Callbacks callbacks);

  // Accepts no connection any more, gives calls a moment to end, and ends them. Idempotent.
  void Stop();

  // With the port that was taken.
  const HostPort& address() const { return address_; }
  ConnectionStats Stats();

 private:
  GrpcPort(HostPort address, const RelayOptions& relay,
           std::unique_ptr<ConnectionAcceptor> acceptor);

  const HostPort address_;
  const RelayOptions relay_options_;
  std::unique_ptr<grpc::Server> server_;
  // gRPC's acceptor of sockets, and the acceptor and relay that feed it.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door_;
  std::unique_ptr<ConnectionRelay> relay_;  // null before Start
  const std::unique_ptr<ConnectionAcceptor> acceptor_;
};

}  // namespace wan::server
