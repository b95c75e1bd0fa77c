// The errors of wan::client. Functions of this library return absl::Status; a status from the
// server has google.rpc details as a payload, which DetailsOf reads.
//
//   code, message   status.code(), status.message()
//   details         DetailsOf(status)
//
// The library itself makes errors with these codes: UNAVAILABLE (there is no connection, or it
// broke and the retries are used up), DEADLINE_EXCEEDED, CANCELLED (a stop was requested),
// DATA_LOSS (a checksum is wrong, or a stream ended too early), INVALID_ARGUMENT (a file cannot be
// a download's destination), INTERNAL (a local file cannot be read or written) and ABORTED (two
// processes download to one file).
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

// Describes one wrong field of a request.
struct FieldViolation {
  // The field's path in the request, for example "width" or "guidance_scale[1]".
  std::string field;
  // Says what is wrong and what would be right.
  std::string description;

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// The contents of google.rpc's BadRequest, RetryInfo and ErrorInfo.
struct ErrorDetails {
  // The wrong fields; set only with INVALID_ARGUMENT.
  std::vector<FieldViolation> violations;
  // How long to wait before calling again; set only with RESOURCE_EXHAUSTED and UNAVAILABLE.
  std::optional<absl::Duration> retry_delay;
  // A word for programs in UPPER_SNAKE_CASE, for example "QUEUE_FULL". Empty if the error did not
  // come from wanserve.
  std::string reason;
  std::map<std::string, std::string> metadata;

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

// Returns the details of an error; empty for OK and for an error without details.
ErrorDetails DetailsOf(const absl::Status& status);

// FromProto and ToProto convert code, message and details, for example those of Event.failed and
// Job.error.
absl::Status FromProto(const google::rpc::Status& status);
google::rpc::Status ToProto(const absl::Status& status);

// Returns a status with the code, message and trailer (grpc-status-details-bin) of a call. Ignores
// a trailer that is not a google.rpc.Status.
absl::Status FromTrailer(int code, std::string_view message, std::string_view details);

}  // namespace wan::client
