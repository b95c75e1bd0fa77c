// Server reflection, so that grpcurl and its like need no .proto files: grpc.reflection.v1 and, for
// older clients, grpc.reflection.v1alpha, whose messages are the same on the wire.
//
// gRPC 1.51's own plug-in is not used: it has no v1, and as a service of the synchronous API it
// holds a thread for as long as a caller holds a stream.
#pragma once

#include <memory>
#include <vector>

namespace grpc {
class Service;
}

namespace wan::server {

class Gatekeeper;

// They list the services of wan.v1, grpc.health.v1.Health and themselves, and know the files of all
// of them. The gatekeeper must outlive them.
std::vector<std::unique_ptr<grpc::Service>> MakeReflectionServices(const Gatekeeper& gatekeeper);

}  // namespace wan::server
