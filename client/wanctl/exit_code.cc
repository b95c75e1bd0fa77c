#include "client/wanctl/exit_code.h"

#include "client/error.h"

namespace wan::client {

ExitCode ExitCodeOf(const absl::Status& status, bool accepted) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitCancelled;
    case absl::StatusCode::kUnavailable:
      // An error with a reason comes from the server, for example because the server is stopping.
      // An error without a reason comes from this library: the server did not answer.
      return DetailsOf(status).reason.empty() || accepted ? kExitUnreachable : kExitRejected;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnauthenticated:
      return accepted ? kExitFailed : kExitRejected;
    default:
      return kExitFailed;
  }
}

ExitCode ExitCodeOf(const wan::v1::Event& end) {
  if (end.has_completed()) return kExitDone;
  if (end.has_cancelled()) return kExitCancelled;
  return end.has_failed() ? ExitCodeOf(FromProto(end.failed().status()), true) : kExitFailed;
}

}  // namespace wan::client
