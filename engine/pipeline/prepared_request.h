// The tokens of a request's texts, which are made once, with the plan.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// A prompt ready for the text encoder.
struct PromptTokens {
  std::vector<int64_t> ids;  // token ids with the end mark, cut to the limit
  int64_t uncut_length = 0;  // number of tokens before the cut
};

// The type of GenerationPlan::prepared.
struct PreparedRequest {
  PromptTokens prompt;
  PromptTokens negative_prompt;  // empty if the model has no guidance
};

}  // namespace wan
