// Reads a request's texts and image before anything is computed. Both functions are thread-safe.
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

// Cleans a text and splits it into tokens. `tokenizer` is null for a synthetic checkpoint, which
// has no vocabulary: the ids are then the text's bytes + 3, so that every prompt still gives its
// own video. INVALID_ARGUMENT if the text is not UTF-8.
absl::StatusOr<PromptTokens> TokenizePrompt(const Tokenizer* tokenizer, std::string_view text,
                                            int64_t max_tokens);

// Reads the texts and the image of a request, for MakePlan and, through the plan, for the pipeline.
// Never fails: errors become violations.
InspectedRequest InspectRequest(const GenerationRequest& request, const PlannedModel& model,
                                const Tokenizer* tokenizer);

}  // namespace wan
