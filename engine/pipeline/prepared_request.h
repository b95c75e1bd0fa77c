// The tokens of a request's texts, which are computed once, when the request is planned.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// A prompt in the form that the text encoder takes.
struct PromptTokens {
  std::vector<int64_t> ids;  // token ids with the end mark, cut to the model's limit
  int64_t uncut_length = 0;  // number of tokens before the cut
};

// GenerationPlan::prepared points to an object of this type.
struct PreparedRequest {
  PromptTokens prompt;
  PromptTokens negative_prompt;  // empty if the model does not use guidance
};

}  // namespace wan
