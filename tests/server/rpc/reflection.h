// Questions to a server's reflection, for tests.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

namespace wan::server {

enum class ReflectionVersion { kV1, kV1Alpha };

// The names of the services that it lists.
std::vector<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel,
                                      ReflectionVersion version = ReflectionVersion::kV1);

// The file that declares `symbol` and all that it imports, serialized, imports first; empty if the
// server does not know it.
std::vector<std::string> FilesOf(const std::shared_ptr<grpc::Channel>& channel,
                                 const std::string& symbol,
                                 ReflectionVersion version = ReflectionVersion::kV1);

}  // namespace wan::server
