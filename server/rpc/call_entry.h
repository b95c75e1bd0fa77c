// Lets the gatekeeper decide about a gRPC call.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/calls/gatekeeper.h"

namespace grpc {
class ServerContextBase;
}

namespace wan::server {

// Calls Gatekeeper::Enter with the credentials from the call's metadata and connection. Does not
// block. Also UNAVAILABLE if the caller's connection has ended.
absl::StatusOr<std::shared_ptr<Call>> EnterCall(const Gatekeeper& gatekeeper,
                                                const grpc::ServerContextBase& context,
                                                std::string_view path);

}  // namespace wan::server
