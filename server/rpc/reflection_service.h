// Server reflection, so that tools such as grpcurl need no .proto files: grpc.reflection.v1 and,
// for older clients, grpc.reflection.v1alpha, whose messages have the same wire format.
//
// This service replaces the plug-in of gRPC 1.51, which lacks v1, blocks a thread for each open
// stream, and ignores the server's limits (docs/operate/limits.md).
#pragma once

#include <memory>
#include <vector>

#include "server/rpc/service_shared.h"

namespace grpc {
class Service;
}

namespace wan::server {

// The services list wan.v1, grpc.health.v1.Health and the reflection services, and return the
// .proto files of all of these. Reflection streams have the limits of other streams: the server
// admits requests and answers them on the pool one by one, and an answer that the caller does not
// read ends the stream.
std::vector<std::unique_ptr<grpc::Service>> MakeReflectionServices(const ServiceShared& shared);

}  // namespace wan::server
