#include "server/rpc/call_entry.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <utility>
#include <vector>

#include "server/conversion/trace_context.h"

namespace wan::server {
namespace {

std::vector<std::string_view> ValuesOf(const grpc::ServerContextBase& context, const char* key) {
  std::vector<std::string_view> values;
  const auto [first, last] = context.client_metadata().equal_range(key);
  for (auto entry = first; entry != last; ++entry) {
    values.emplace_back(entry->second.data(), entry->second.size());
  }
  return values;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Call>> EnterCall(const Gatekeeper& gatekeeper,
                                                const grpc::ServerContextBase& context,
                                                std::string_view path) {
  Presented presented;
  presented.authorization = ValuesOf(context, "authorization");
  // The subjects refer to what it holds.
  const auto connection = context.auth_context();
  std::vector<grpc::string_ref> subjects;
  if (connection != nullptr) {
    subjects = connection->FindPropertyValues(GRPC_X509_SUBJECT_PROPERTY_NAME);
  }
  if (!subjects.empty()) {
    presented.certificate_subject = {subjects.front().data(), subjects.front().size()};
  }
  absl::StatusOr<std::shared_ptr<Call>> call = gatekeeper.Enter(presented, context.peer(), path);
  if (call.ok()) {
    (*call)->SetTrace(
        ParseTraceContext(ValuesOf(context, "traceparent"), ValuesOf(context, "tracestate")));
  }
  return call;
}

}  // namespace wan::server
