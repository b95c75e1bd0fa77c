// Errors of the server, typed. Every function of wan::client returns absl::Status; a status that
// came from the server carries its google.rpc details as a payload, and DetailsOf reads them.
//
//   code, message   status.code(), status.message()
//   details         DetailsOf(status)
//
// Codes that this library makes by itself: UNAVAILABLE (no connection, or it broke and the retries
// are used up), DEADLINE_EXCEEDED, CANCELLED (the caller's stop token), DATA_LOSS (a checksum is
// wrong, a stream ended too early), INTERNAL (a local file cannot be read or written) and ABORTED
// (two processes download to one file).
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
  // Path in the request, for example "width" or "guidance_scale[1]".
  std::string field;
  // What is wrong and what would be right.
  std::string description;

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// What google.rpc's BadRequest, RetryInfo and ErrorInfo say.
struct ErrorDetails {
  // Every wrong field; only with INVALID_ARGUMENT.
  std::vector<FieldViolation> violations;
  // When it makes sense to call again; with RESOURCE_EXHAUSTED and UNAVAILABLE.
  std::optional<absl::Duration> retry_delay;
  // UPPER_SNAKE_CASE, for example "QUEUE_FULL". Empty: the error did not come from wanserve.
  std::string reason;
  std::map<std::string, std::string> metadata;

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

// Empty for OK, and for errors that carry no details.
ErrorDetails DetailsOf(const absl::Status& status);

// Code, message and details, as in Event.failed or Job.error.
absl::Status FromProto(const google::rpc::Status& status);
google::rpc::Status ToProto(const absl::Status& status);

// A call's outcome: its code, its message, and its trailer grpc-status-details-bin. A trailer that
// is no google.rpc.Status is ignored.
absl::Status FromTrailer(int code, std::string_view message, std::string_view details);

}  // namespace wan::client
