// Converts a request of POST /v1/videos to a GenerationRequest.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/form.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Returns the model of this name, or for an empty name the server's only one. Fails with NOT_FOUND
// if there is no such model, or if the name is empty and the server has several models.
using FindModel = std::function<absl::StatusOr<wan::v1::Model>(std::string_view name)>;

// docs/use/openai.md describes the fields. `idempotency_key` is the value of that header field;
// nothing if the request lacks it. If the request lacks `model`, the result has the model that
// `find_model` returns. Fails with INVALID_ARGUMENT and all violations, under the caller's names:
// wrong types, empty values, fields that exclude each other, and unknown fields. JobService::Create
// makes all other checks; its violations have the field names of GenerationRequest (see
// HttpFieldOf).
absl::StatusOr<wan::v1::GenerationRequest> ToGenerationRequest(
    Form form, std::optional<std::string_view> idempotency_key, const FindModel& find_model);

// Returns the names of all fields that a request may have.
std::vector<std::string_view> VideoFieldNames();

}  // namespace wan::server
