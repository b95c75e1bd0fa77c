#include "server/rpc/status_conversion.h"

#include <grpcpp/support/status.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/conversion/convert.h"
#include "server/conversion/message_texts.h"

namespace wan::server {
namespace {

// Maximum number of bytes of the parts of a trailer. gRPC sends the message twice: percent-encoded
// as grpc-message, where a byte may become three, and inside the details, which are base64.
constexpr size_t kMessageBytes = 700;
constexpr size_t kDescriptionBytes = 400;
constexpr size_t kViolationsBytes = 2600;
constexpr size_t kOverheadBytes = 8;  // bytes for the tags and lengths of one violation

// Returns as many violations as fit; `total` also counts those that `whole` has already left out.
google::rpc::BadRequest Fitting(const google::rpc::BadRequest& whole, size_t total) {
  google::rpc::BadRequest fitting;
  size_t bytes = 0;
  for (const auto& violation : whole.field_violations()) {
    const std::string field = Shortened(violation.field(), kDescriptionBytes);
    const std::string description = Shortened(violation.description(), kDescriptionBytes);
    bytes += field.size() + description.size() + kOverheadBytes;
    if (bytes > kViolationsBytes) {
      const size_t left_out = total - static_cast<size_t>(fitting.field_violations_size());
      fitting.add_field_violations()->set_description(
          absl::StrCat("and ", left_out, left_out == 1 ? " more violation" : " more violations",
                       " that did not fit into this answer"));
      break;
    }
    auto* added = fitting.add_field_violations();
    added->set_field(field);
    added->set_description(description);
  }
  return fitting;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status converted = ToProto(status);
  converted.set_message(Shortened(converted.message(), kMessageBytes));
  for (auto& detail : *converted.mutable_details()) {
    google::rpc::BadRequest bad_request;
    if (detail.UnpackTo(&bad_request)) {
      detail.PackFrom(Fitting(bad_request, ViolationCountOf(status)));
    }
    google::rpc::QuotaFailure quota;
    if (detail.UnpackTo(&quota)) {
      for (auto& violation : *quota.mutable_violations()) {
        violation.set_subject(Shortened(violation.subject(), kDescriptionBytes));
        violation.set_description(Shortened(violation.description(), kMessageBytes));
      }
      detail.PackFrom(quota);
    }
  }
  return grpc::Status(static_cast<grpc::StatusCode>(converted.code()), converted.message(),
                      converted.SerializeAsString());
}

}  // namespace wan::server
