// Answers a unary call. The answer holds its lease (server/calls/admission.h) until gRPC has sent
// it. If the caller does not read the answer in time, UnaryCall cancels the call.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/unread_answers.h"

namespace wan::server {

// An answer in serialized form. Keep no message object, because gRPC would keep both the message
// and its bytes in memory.
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
    *buffer = answer.bytes;  // the two buffers share the bytes
    *own_buffer = true;
    return Status::OK;
  }
};

}  // namespace grpc

namespace wan::server {

// The gRPC reactor of one unary call. The reactor is created on gRPC's thread, and deletes itself
// in OnDone.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Objects that all calls of a service use; they must outlive the calls.
  struct Shared {
    Admission& admission;
    UnreadAnswers& unread;
  };

  // gRPC owns `answer`, which outlives this object. `place` is the lease of the request.
  UnaryCall(grpc::CallbackServerContext& context, SentAnswer& answer, std::shared_ptr<Call> call,
            Admission::Lease place, const Shared& shared);

  // Call either Succeed or Fail, once, on any thread.
  void Fail(const absl::Status& status);
  void Answer(const google::protobuf::Message& message);

  // Stop is requested when the caller has gone or has cancelled the call.
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

// Answers a unary call when it is called. Call the reply once, on any thread; all copies answer the
// same call.
template <typename Response>
class Reply {
 public:
  explicit Reply(UnaryCall& call) : call_(&call) {}

  void operator()(absl::StatusOr<Response> result) const {
    result.ok() ? call_->Answer(*result) : call_->Fail(result.status());
  }
  // Like UnaryCall::caller_gone; do not call caller_gone after the answer.
  std::stop_token caller_gone() const { return call_->caller_gone(); }

 private:
  UnaryCall* call_;
};

}  // namespace wan::server
