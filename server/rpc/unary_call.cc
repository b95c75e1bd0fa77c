#include "server/rpc/unary_call.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include "server/rpc/status_conversion.h"

namespace wan::server {

UnaryCall::UnaryCall(grpc::CallbackServerContext& context, SentAnswer& answer,
                     std::shared_ptr<Call> call, Admission::Lease place, const Shared& shared)
    : context_(context),
      answer_(answer),
      call_(std::move(call)),
      shared_(shared),
      place_(std::move(place)) {}

void UnaryCall::Fail(const absl::Status& status) { Send(status); }

void UnaryCall::Answer(const google::protobuf::Message& message) {
  const auto bytes = static_cast<int64_t>(message.ByteSizeLong());
  absl::StatusOr<Admission::Lease> place = shared_.admission.Answer(std::move(place_), bytes);
  if (!place.ok()) {
    Send(place.status());
    return;
  }
  place_ = *std::move(place);
  bool own = false;
  const bool written = grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::Message>(
                           message, &answer_.bytes, &own)
                           .ok();
  Send(written ? absl::OkStatus()
               : absl::InternalError("the answer has more than 2 GiB and cannot be sent"));
}

void UnaryCall::Send(const absl::Status& status) {
  const absl::Status shown = call_->End(status);
  unread_ = shared_.unread.Begin([&context = context_] { context.TryCancel(); });
  Finish(ToGrpcStatus(shown));  // do nothing after this: OnDone may delete the object
}

void UnaryCall::OnDone() {
  if (unread_.has_value()) shared_.unread.End(*unread_);
  delete this;
}

}  // namespace wan::server
