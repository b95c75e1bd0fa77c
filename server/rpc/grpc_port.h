// Serves gRPC on a port.
#pragma once

#include <functional>
#include <memory>
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
  // Listens on the address, but accepts no connection before Start. Fails with UNAVAILABLE, and a
  // message that begins with `setting`, if it cannot listen. The objects in `relay` must outlive
  // the port; relay.connection.open_streams is ignored.
  static absl::StatusOr<std::unique_ptr<GrpcPort>> Listen(std::string_view setting,
                                                          const HostPort& address,
                                                          const ConnectionLimits& limits,
                                                          RelayOptions relay);
  GrpcPort(const GrpcPort&) = delete;
  GrpcPort& operator=(const GrpcPort&) = delete;
  // Calls Stop if nobody has.
  ~GrpcPort();

  struct Callbacks {
    std::function<void(bool)> accepting;  // passed to ConnectionAcceptor::Start
    // The port calls on_refused whenever the relay calls ConnectionRelay::Callbacks::on_refused.
    std::function<void(const RefusedCaller&)> on_refused;
  };
  // Begins to accept connections and to serve them. The services must outlive the port. Call Start
  // at most once.
  absl::Status Start(const std::vector<grpc::Service*>& services, Callbacks callbacks);

  // Stops accepting connections, gives running calls two seconds to end, and cancels the calls that
  // have not ended. Later calls do nothing.
  void Stop();

  // The address on which the port listens, with the actual port number.
  const HostPort& address() const { return address_; }
  ConnectionStats Stats();

 private:
  GrpcPort(HostPort address, const RelayOptions& relay,
           std::unique_ptr<ConnectionAcceptor> acceptor);

  const HostPort address_;
  const RelayOptions relay_options_;
  std::unique_ptr<grpc::Server> server_;
  // `acceptor_` passes connections to `relay_`, which passes its sockets to gRPC through `door_`.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door_;
  std::unique_ptr<ConnectionRelay> relay_;  // null before Start
  const std::unique_ptr<ConnectionAcceptor> acceptor_;
};

}  // namespace wan::server
