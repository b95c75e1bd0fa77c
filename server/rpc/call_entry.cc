#include "server/rpc/call_entry.h"

#include <grpcpp/server_context.h>

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
  // Ask the gatekeeper for the caller: context.peer() names only the relay's local socket.
  const std::shared_ptr<const ConnectedCaller> caller = gatekeeper.callers().Find(context.peer());
  if (caller == nullptr) return absl::UnavailableError("the caller's connection has ended");
  presented.certificate_subject = caller->certificate_subject;
  absl::StatusOr<std::shared_ptr<Call>> call = gatekeeper.Enter(presented, caller->peer, path);
  if (call.ok()) {
    (*call)->SetTrace(
        ParseTraceContext(ValuesOf(context, "traceparent"), ValuesOf(context, "tracestate")));
  }
  return call;
}

}  // namespace wan::server
