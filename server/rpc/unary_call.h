// Answers a unary call. The answer counts (server/calls/admission.h) until gRPC has sent it; if the
// caller does not take it in time, the call ends.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/unread_answers.h"

namespace wan::server {

// An answer as it is sent: gRPC would keep the message beside its bytes.
struct SentAnswer {
  grpc::ByteBuffer bytes;
};

}  // namespace wan::server

namespace grpc {

template <>
class SerializationTraits<wan::server::SentAnswer> {
 public:
  static Status Serialize(const wan::server::SentAnswer& answer, ByteBuffer* buffer,
                          bool* own_buffer) {
    *buffer = answer.bytes;  // shares them
    *own_buffer = true;
    return Status::OK;
  }
};

}  // namespace grpc

namespace wan::server {

// One call. gRPC's thread makes it; it deletes itself when gRPC is done with it.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Objects that the calls of a service use; all must outlive the calls.
  struct Shared {
    Admission& admission;
    UnreadAnswers& unread;
  };

  // `answer` is gRPC's, and goes after this object. `place` is the request's.
  UnaryCall(grpc::CallbackServerContext& context, SentAnswer& answer, std::shared_ptr<Call> call,
            Admission::Lease place, const Shared& shared);

  // Answer the call: once, on any thread.
  void Fail(const absl::Status& status);
  void Answer(const google::protobuf::Message& message);

  // Asks for a stop when the caller has gone, or has cancelled the call.
  std::stop_token caller_gone() const { return gone_.get_token(); }

 private:
  void Send(const absl::Status& status);
  void OnCancel() override { gone_.request_stop(); }
  void OnDone() override;

  grpc::CallbackServerContext& context_;
  SentAnswer& answer_;
  const std::shared_ptr<Call> call_;
  const Shared shared_;
  Admission::Lease place_;
  std::stop_source gone_;
  std::optional<UnreadAnswers::Entry> unread_;
};

// Answers a call, once, on any thread. Copies answer the same call.
template <typename Response>
class Reply {
 public:
  explicit Reply(UnaryCall& call) : call_(&call) {}

  void operator()(absl::StatusOr<Response> result) const {
    result.ok() ? call_->Answer(*result) : call_->Fail(result.status());
  }
  // As in UnaryCall; call it before the answer.
  std::stop_token caller_gone() const { return call_->caller_gone(); }

 private:
  UnaryCall* call_;
};

}  // namespace wan::server
