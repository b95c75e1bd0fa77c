// The server's errors as types. Functions of wan::client return absl::Status; a status that came
// from the server carries its google.rpc details as a payload, which DetailsOf reads.
//
//   code, message   status.code(), status.message()
//   details         DetailsOf(status)
//
// This library itself returns these codes: UNAVAILABLE (there is no connection, or it broke and the
// retries are used up), DEADLINE_EXCEEDED, CANCELLED (a stop was requested), DATA_LOSS (a checksum
// is wrong, or a stream ended too early), INVALID_ARGUMENT (a file cannot be a download's
// destination), INTERNAL (a local file cannot be read or written) and ABORTED (two processes
// download to one file).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace wan::client {

// One wrong field of a request.
struct FieldViolation {
  // The field's path in the request, for example "width" or "guidance_scale[1]".
  std::string field;
  // Says what is wrong and what would be right.
  std::string description;

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// The contents of google.rpc's BadRequest, RetryInfo and ErrorInfo.
struct ErrorDetails {
  // The wrong fields; only with INVALID_ARGUMENT.
  std::vector<FieldViolation> violations;
  // How long to wait before calling again; only with RESOURCE_EXHAUSTED and UNAVAILABLE.
  std::optional<absl::Duration> retry_delay;
  // UPPER_SNAKE_CASE, for example "QUEUE_FULL". Empty if the error did not come from wanserve.
  std::string reason;
  std::map<std::string, std::string> metadata;

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

// Empty for OK, and for errors that carry no details.
ErrorDetails DetailsOf(const absl::Status& status);

// Converts code, message and details, as Event.failed and Job.error hold them.
absl::Status FromProto(const google::rpc::Status& status);
google::rpc::Status ToProto(const absl::Status& status);

// Makes a status of a call's code, message and trailer grpc-status-details-bin. A trailer that does
// not parse as google.rpc.Status is ignored.
absl::Status FromTrailer(int code, std::string_view message, std::string_view details);

}  // namespace wan::client
