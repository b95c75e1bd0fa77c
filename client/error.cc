#include "client/error.h"

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

namespace wan::client {
namespace {

// The key of the payload in which a status keeps its google.rpc.Status.
constexpr char kPayloadUrl[] = "type.googleapis.com/google.rpc.Status";

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

absl::Status FromProto(const google::rpc::Status& proto) {
  // The cast is safe: absl treats a code that it does not know as UNKNOWN.
  absl::Status status(static_cast<absl::StatusCode>(proto.code()), proto.message());
  if (!status.ok() && proto.details_size() > 0) {
    status.SetPayload(kPayloadUrl, absl::Cord(proto.SerializeAsString()));
  }
  return status;
}

google::rpc::Status ToProto(const absl::Status& status) {
  google::rpc::Status proto;
  if (auto payload = status.GetPayload(kPayloadUrl)) {
    proto.ParseFromString(std::string(*payload));
  }
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));
  return proto;
}

absl::Status FromTrailer(int code, std::string_view message, std::string_view details) {
  google::rpc::Status proto;
  if (!proto.ParseFromArray(details.data(), static_cast<int>(details.size()))) proto.Clear();
  // Use the transport's code and message; the trailer only adds details.
  proto.set_code(code);
  proto.set_message(std::string(message));
  return FromProto(proto);
}

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  const google::rpc::Status proto = ToProto(status);
  for (const google::protobuf::Any& any : proto.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::RetryInfo retry;
    google::rpc::ErrorInfo info;
    if (any.UnpackTo(&bad_request)) {
      for (const auto& violation : bad_request.field_violations()) {
        details.violations.push_back({violation.field(), violation.description()});
      }
    } else if (any.UnpackTo(&retry)) {
      details.retry_delay = ToDuration(retry.retry_delay());
    } else if (any.UnpackTo(&info)) {
      details.reason = info.reason();
      details.metadata = {info.metadata().begin(), info.metadata().end()};
    }
  }
  return details;
}

}  // namespace wan::client
