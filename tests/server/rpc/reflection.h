// Names of the services that a server's reflection lists, for tests.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace wan::server {

// The raw answer to grpc.reflection.v1alpha's list_services, in which the names stand as they are.
// Generated stubs of reflection cannot live in one binary with the server's side of it.
std::string ListServices(const std::shared_ptr<grpc::Channel>& channel);

}  // namespace wan::server
