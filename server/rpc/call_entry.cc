#include "server/rpc/call_entry.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <vector>

namespace wan::server {
namespace {

constexpr char kAuthorization[] = "authorization";

}  // namespace

absl::StatusOr<std::shared_ptr<Call>> EnterCall(const Gatekeeper& gatekeeper,
                                                const grpc::ServerContextBase& context,
                                                std::string_view path) {
  Presented presented;
  const auto [first, last] = context.client_metadata().equal_range(kAuthorization);
  for (auto entry = first; entry != last; ++entry) {
    presented.authorization.emplace_back(entry->second.data(), entry->second.size());
  }
  // The subjects refer to what it holds.
  const auto connection = context.auth_context();
  std::vector<grpc::string_ref> subjects;
  if (connection != nullptr) {
    subjects = connection->FindPropertyValues(GRPC_X509_SUBJECT_PROPERTY_NAME);
  }
  if (!subjects.empty()) {
    presented.certificate_subject = {subjects.front().data(), subjects.front().size()};
  }
  return gatekeeper.Enter(presented, context.peer(), path);
}

}  // namespace wan::server
