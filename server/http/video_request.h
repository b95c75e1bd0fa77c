// Converts a request of POST /v1/videos to a GenerationRequest.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/http/form.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

using FindModel = std::function<absl::StatusOr<wan::v1::Model>(std::string_view name)>;

// docs/use/openai.md describes the fields. `idempotency_key` is the value of that header field;
// nothing if the request lacks it. `find_model` returns the model, whose defaults and strides are
// needed. Fails with INVALID_ARGUMENT and all violations, under the caller's names: wrong types,
// empty values, fields that exclude each other, and unknown fields. All other checks are left to
// JobService::Create, whose violations have the contract's names (HttpFieldOf).
absl::StatusOr<wan::v1::GenerationRequest> ToGenerationRequest(
    Form form, std::optional<std::string_view> idempotency_key, const FindModel& find_model);

}  // namespace wan::server
