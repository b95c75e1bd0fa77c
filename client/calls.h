// Makes unary and server-streaming calls over Connection::Call. Only this library includes the
// header, because it includes gRPC's headers.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"

namespace wan::client {

// Makes a unary call. `Service` is a generated service class, `method` a unary method of its stub.
template <typename Service, typename Request, typename Response>
absl::StatusOr<Response> CallUnary(
    const Connection& connection, const std::stop_token& stop,
    grpc::Status (Service::StubInterface::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  Response response;
  const absl::Status status = connection.Call(
      stop, [&](const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context) {
        const auto stub = Service::NewStub(channel);
        return (*stub.*method)(&context, request, &response);
      });
  if (!status.ok()) return status;
  return response;
}

// Opens a stream with `open`, which is (Service::StubInterface&, ClientContext*) ->
// std::unique_ptr<grpc::ClientReaderInterface<Message>>, and passes every message to `on_message`.
// If `on_message` returns an error, the call ends and returns that error.
template <typename Service, typename Message, typename Open, typename OnMessage>
absl::Status CallStream(const Connection& connection, const std::stop_token& stop, Open open,
                        OnMessage on_message) {
  absl::Status refused;
  const absl::Status outcome = connection.Call(
      stop, [&](const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context) {
        const auto stub = Service::NewStub(channel);
        std::unique_ptr<grpc::ClientReaderInterface<Message>> reader = open(*stub, &context);
        Message message;
        while (reader->Read(&message)) {
          // Drop messages that arrive after the call was cancelled.
          if (!refused.ok()) continue;
          refused = on_message(message);
          if (!refused.ok()) context.TryCancel();
        }
        return reader->Finish();
      });
  return refused.ok() ? outcome : refused;
}

}  // namespace wan::client
