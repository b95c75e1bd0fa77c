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
#include "server/config/host_port.h"

namespace grpc {
class Server;
class ServerCredentials;
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
  // accepted before Start.
  static absl::StatusOr<std::unique_ptr<GrpcPort>> Listen(std::string_view setting,
                                                          const HostPort& address,
                                                          const ConnectionLimits& limits);
  GrpcPort(const GrpcPort&) = delete;
  GrpcPort& operator=(const GrpcPort&) = delete;
  // Stops.
  ~GrpcPort();

  // Begins to serve. The services must outlive the port. `accepting` is
  // ConnectionAcceptor::Start's. Called once.
  absl::Status Start(const std::vector<grpc::Service*>& services,
                     const std::shared_ptr<grpc::ServerCredentials>& credentials,
                     std::function<void(bool)> accepting);

  // Accepts no connection any more, gives calls a moment to end, and ends them. Idempotent.
  void Stop();

  // With the port that was taken.
  const HostPort& address() const { return address_; }
  ConnectionStats Stats() { return acceptor_->Stats(); }

 private:
  GrpcPort(HostPort address, std::unique_ptr<ConnectionAcceptor> acceptor);

  const HostPort address_;
  std::unique_ptr<grpc::Server> server_;
  // gRPC's door for connections, and who brings them there.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door_;
  const std::unique_ptr<ConnectionAcceptor> acceptor_;
};

}  // namespace wan::server
