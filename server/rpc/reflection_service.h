// Server reflection, so that grpcurl and its like need no .proto files: grpc.reflection.v1 and, for
// older clients, grpc.reflection.v1alpha, whose messages are the same on the wire.
//
// It replaces the plug-in of gRPC 1.51, which has no v1, blocks a thread for each open stream, and
// is subject to no limit (docs/operate/limits.md).
#pragma once

#include <memory>
#include <vector>

#include "server/rpc/service_shared.h"

namespace grpc {
class Service;
}

namespace wan::server {

// The services list wan.v1, grpc.health.v1.Health and themselves, and return their files. Their
// streams have the same limits as other streams: requests are admitted and answered on the pool one
// by one, and an answer that the caller does not read ends the stream.
std::vector<std::unique_ptr<grpc::Service>> MakeReflectionServices(const ServiceShared& shared);

}  // namespace wan::server
