// Reads a request's texts and image, before anything is computed.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/pipeline/prepared_request.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/planned_model.h"
#include "engine/text/tokenizer.h"

namespace wan {

// Cleans and tokenises. `tokenizer` is null for synthetic checkpoints, which have no vocabulary:
// their ids are the text's bytes + 3, so that every prompt still gives its own video.
// INVALID_ARGUMENT for text that is not UTF-8.
absl::StatusOr<PromptTokens> TokenizePrompt(const Tokenizer* tokenizer, std::string_view text,
                                            int64_t max_tokens);

// Reads texts and image of a request, once: for MakePlan, and for the pipeline, which finds them in
// the plan. Never fails: whatever is wrong becomes violations. Called by any thread.
InspectedRequest InspectRequest(const GenerationRequest& request, const PlannedModel& model,
                                const Tokenizer* tokenizer);

}  // namespace wan
