// Makes the errors of calls about models.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Returns NOT_FOUND (MODEL_NOT_FOUND). `error` says why the only load of this name failed; OK if
// nobody has tried to load the model.
absl::Status ModelNotFoundError(const std::string& name,
                                const absl::Status& error = absl::OkStatus());

// Returns FAILED_PRECONDITION (MODEL_IN_USE); `jobs` is the number of jobs that need the model.
absl::Status ModelInUseError(const std::string& name, int jobs);

// Returns FAILED_PRECONDITION with `reason`.
absl::Status ModelRefusedError(std::string_view reason, const std::string& message);

// Returns FAILED_PRECONDITION for a model that is not READY: MODEL_LOADING if the model is being
// loaded, otherwise MODEL_NOT_READY. `error` says why loading the model failed, if it has failed.
absl::Status ModelNotReadyError(const std::string& name, wan::v1::ModelState state,
                                const absl::Status& error);

// Returns the error of a model whose warm-up failed with `cause`; the error has the code and reason
// of `cause`.
absl::Status WarmupFailedError(const absl::Status& cause);

}  // namespace wan::server
