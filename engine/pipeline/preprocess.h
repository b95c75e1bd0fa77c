// Tokenizes a request's texts, measures its image and reads its latents before anything is
// computed. Both functions are thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/pipeline/prepared_request.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_model.h"
#include "engine/text/tokenizer.h"

namespace wan {

// Cleans a text and splits it into token ids. `tokenizer` is null for a synthetic checkpoint, which
// has no vocabulary. Without a tokenizer the ids are the text's bytes + 3, so that different
// prompts still give different videos. INVALID_ARGUMENT if the text is not UTF-8.
absl::StatusOr<PromptTokens> TokenizePrompt(const Tokenizer* tokenizer, std::string_view text,
                                            int64_t max_tokens);

// Plans a request: fills in defaults, splits its texts into tokens and finds its latents (which the
// pipeline uses later), measures its image, and calls MakePlan. INVALID_ARGUMENT names every
// violation. Any thread may call it.
absl::StatusOr<GenerationPlan> PlanRequest(const GenerationRequest& request,
                                           const PlannedModel& model, const Tokenizer* tokenizer,
                                           int64_t drawn_seed, const PlanLimits& limits);

}  // namespace wan
