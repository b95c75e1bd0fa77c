// The tokens of a request's texts and its latents, which are read once, when the request is
// planned.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/formats/tensor_file.h"

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
  // The tensors in the request's files of latents, whose bytes they share.
  std::optional<StoredTensor> initial_latents;
  std::optional<StoredTensor> latents;
};

}  // namespace wan
