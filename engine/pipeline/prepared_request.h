// The tokens of a request, whose texts are read once, when the plan is made.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// A prompt ready for the text encoder.
struct PromptTokens {
  std::vector<int64_t> ids;  // with the end mark, cut to the limit
  int64_t uncut_length = 0;  // the number of tokens before the cut
};

// GenerationPlan::prepared.
struct PreparedRequest {
  PromptTokens prompt;
  PromptTokens negative_prompt;  // no ids for a model without guidance
};

}  // namespace wan
