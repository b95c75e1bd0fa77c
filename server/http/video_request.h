// The request of POST /v1/videos as one of the contract.
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

// Translates what the caller sent (docs/use/openai.md has the fields). `idempotency_key` is the
// header's value, nothing without one. `find_model` is asked for the model's defaults and strides.
// INVALID_ARGUMENT with every violation that the translation finds, named as the caller named the
// fields: values of a wrong type, values that are given but empty, fields that exclude each other,
// and fields that do not exist. Everything else is left to JobService::Create, whose violations
// name the contract's fields (HttpFieldOf).
absl::StatusOr<wan::v1::GenerationRequest> ToGenerationRequest(
    Form form, std::optional<std::string_view> idempotency_key, const FindModel& find_model);

}  // namespace wan::server
