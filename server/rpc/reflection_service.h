// Server reflection, so that grpcurl and its like need no .proto files: grpc.reflection.v1 and, for
// older clients, grpc.reflection.v1alpha, whose messages are the same on the wire.
//
// gRPC 1.51's own plug-in is not used: it has no v1, as a service of the synchronous API it holds a
// thread for as long as a caller holds a stream, and it is outside of every limit
// (docs/operate/limits.md).
#pragma once

#include <memory>
#include <vector>

#include "server/rpc/service_shared.h"

namespace grpc {
class Service;
}

namespace wan::server {

// They list the services of wan.v1, grpc.health.v1.Health and themselves, and know the files of all
// of them. A conversation is a stream like the others: it has a place among them, its questions are
// admitted and answered on the pool one after the other, and an answer that nobody takes ends it.
std::vector<std::unique_ptr<grpc::Service>> MakeReflectionServices(const ServiceShared& shared);

}  // namespace wan::server
