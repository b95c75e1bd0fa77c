// Lets the gatekeeper decide whether a gRPC call may go on.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/calls/gatekeeper.h"

namespace grpc {
class ServerContextBase;
}

namespace wan::server {

// Calls Gatekeeper::Enter with the credentials that the call's metadata and connection contain.
// Does not block. Fails like Gatekeeper::Enter, and with UNAVAILABLE if the caller's connection has
// ended.
absl::StatusOr<std::shared_ptr<Call>> EnterCall(const Gatekeeper& gatekeeper,
                                                const grpc::ServerContextBase& context,
                                                std::string_view path);

}  // namespace wan::server
