// The way of every unary call that may block for a moment.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/status_conversion.h"
#include "server/rpc/worker_pool.h"

namespace wan::server {

// Runs `work`, a function that returns absl::StatusOr<Response>, on the pool and answers with what
// it returns.
template <typename Response, typename Work>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, WorkerPool& pool,
                                 Response* response, Work work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  pool.Post([reactor, response, work = std::move(work)] {
    absl::StatusOr<Response> result = work();
    if (result.ok()) *response = std::move(*result);
    reactor->Finish(ToGrpcStatus(result.status()));
  });
  return reactor;
}

}  // namespace wan::server
