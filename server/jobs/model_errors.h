// The errors of calls about models.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// NOT_FOUND (MODEL_NOT_FOUND). `error` says why the only load of this name failed; OK if there was
// none.
absl::Status ModelNotFoundError(const std::string& name,
                                const absl::Status& error = absl::OkStatus());

// FAILED_PRECONDITION (MODEL_IN_USE): so many jobs need the model.
absl::Status ModelInUseError(const std::string& name, int jobs);

// FAILED_PRECONDITION with this reason.
absl::Status ModelRefusedError(std::string_view reason, const std::string& message);

// FAILED_PRECONDITION (MODEL_LOADING, MODEL_NOT_READY) for a model in this state, which has `error`
// if it could not be loaded.
absl::Status ModelNotReadyError(const std::string& name, wan::v1::ModelState state,
                                const absl::Status& error);

// The error of a model whose warm-up ended with `cause`, with its code and reason.
absl::Status WarmupFailedError(const absl::Status& cause);

}  // namespace wan::server
