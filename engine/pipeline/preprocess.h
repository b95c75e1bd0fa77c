// Reads a request's texts and image, before anything is computed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/planning/inspected_request.h"
#include "engine/planning/planned_model.h"
#include "engine/text/tokenizer.h"

namespace wan {

// A prompt ready for the text encoder.
struct PromptTokens {
  std::vector<int64_t> ids;  // with the end mark, cut to the limit
  int64_t uncut_length = 0;  // tokens before the cut
};

// Cleans and tokenises. `tokenizer` is null for synthetic checkpoints, which have no vocabulary:
// their ids are the text's bytes + 3, so that every prompt still gives its own video.
// INVALID_ARGUMENT for text that is not UTF-8.
absl::StatusOr<PromptTokens> TokenizePrompt(const Tokenizer* tokenizer, std::string_view text,
                                            int64_t max_tokens);

// Reads texts and image of a request for MakePlan. Never fails: what is wrong becomes violations.
InspectedRequest InspectRequest(const GenerationRequest& request, const PlannedModel& model,
                                const Tokenizer* tokenizer);

}  // namespace wan
