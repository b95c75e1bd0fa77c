// The two shapes of a call, unary and server-streaming, over Connection::Call. Private to this
// library: it brings gRPC's headers.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"

namespace wan::client {

// `method` is a stub's unary method.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallUnary(const Connection& connection, const std::stop_token& stop,
                                   Stub& stub,
                                   grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                                   const Request& request) {
  Response response;
  const absl::Status status = connection.Call(stop, [&](grpc::ClientContext& context) {
    return (stub.*method)(&context, request, &response);
  });
  if (!status.ok()) return status;
  return response;
}

// Gives every message to `on_message`; an error that it returns ends the call and is the outcome.
// `open` starts the call: ClientContext* -> std::unique_ptr<grpc::ClientReaderInterface<Message>>.
template <typename Message, typename Open, typename OnMessage>
absl::Status CallStream(const Connection& connection, const std::stop_token& stop, Open open,
                        OnMessage on_message) {
  absl::Status refused;
  const absl::Status outcome = connection.Call(stop, [&](grpc::ClientContext& context) {
    std::unique_ptr<grpc::ClientReaderInterface<Message>> reader = open(&context);
    Message message;
    while (reader->Read(&message)) {
      // What was under way when the call was cancelled is read and dropped.
      if (!refused.ok()) continue;
      refused = on_message(message);
      if (!refused.ok()) context.TryCancel();
    }
    return reader->Finish();
  });
  return refused.ok() ? outcome : refused;
}

}  // namespace wan::client
