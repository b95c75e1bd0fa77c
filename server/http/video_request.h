// The request of POST /v1/videos as one of the contract.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/http/form.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

using FindModel = std::function<absl::StatusOr<wan::v1::Model>(std::string_view name)>;

// Translates what the caller sent (docs/openai.md has the fields). `find_model` is asked for the
// model's defaults where the length is given in seconds. INVALID_ARGUMENT with every violation that
// the translation finds, named as the caller named the fields: values of a wrong type, fields that
// exclude each other, and fields that do not exist. Everything else is left to JobService::Create.
absl::StatusOr<wan::v1::GenerationRequest> ToGenerationRequest(Form form,
                                                               std::string_view idempotency_key,
                                                               const FindModel& find_model);

// The caller's name for a field of wan.v1.GenerationRequest: "num_inference_steps" for "steps".
// Other texts stay as they are.
std::string HttpFieldOf(std::string_view field);

}  // namespace wan::server
