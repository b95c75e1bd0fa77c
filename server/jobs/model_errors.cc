#include "server/jobs/model_errors.h"

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {

absl::Status ModelNotFoundError(const std::string& name, const absl::Status& error) {
  return WithReason(
      absl::NotFoundError(absl::StrCat(
          "there is no model '", name, "'",
          error.ok() ? "" : absl::StrCat("; its last load failed: ", error.message()))),
      kReasonModelNotFound);
}

absl::Status ModelInUseError(const std::string& name, int jobs) {
  return ModelRefusedError(
      kReasonModelInUse,
      absl::StrCat("model '", name, "' has ", jobs,
                   jobs == 1 ? " job that waits or runs; cancel it or let it end first"
                             : " jobs that wait or run; cancel them or let them end first"));
}

absl::Status ModelRefusedError(std::string_view reason, const std::string& message) {
  return WithReason(absl::FailedPreconditionError(message), reason);
}

absl::Status ModelNotReadyError(const std::string& name, wan::v1::ModelState state,
                                const absl::Status& error) {
  if (state == wan::v1::MODEL_STATE_LOADING) {
    return ModelRefusedError(
        kReasonModelLoading,
        absl::StrCat("model '", name, "' is being loaded; try again when it is ready"));
  }
  return ModelRefusedError(
      kReasonModelNotReady,
      error.ok() ? absl::StrCat("model '", name, "' is not loaded; load it with LoadModel first")
                 : absl::StrCat("model '", name, "' could not be loaded: ", error.message()));
}

absl::Status WarmupFailedError(const absl::Status& cause) {
  const absl::Status error(cause.code(), absl::StrCat("the warm-up failed: ", cause.message()));
  const std::string reason = ReasonOf(cause);
  return reason.empty() ? error : WithReason(error, reason);
}

}  // namespace wan::server
