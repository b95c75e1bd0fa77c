// What a request's texts and its image turned out to be when they were read. The pipeline's
// preprocessing fills it; MakePlan reads it, and never the texts or the image themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/errors.h"
#include "engine/api/generation.h"

namespace wan {

struct InspectedRequest {
  // Tokens with the end mark, before any cut. Absent if the text could not be read at all, or for
  // the negative prompt of a model without guidance.
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> negative_prompt_tokens;
  // Pixels of the image; absent without one or if it could not be read.
  std::optional<VideoShape> image;  // num_frames is unused
  // The tokens and pixels themselves, for the pipeline; planning only passes them on.
  std::shared_ptr<const PreparedRequest> prepared;
  // What reading found wrong, for example a broken image.
  std::vector<FieldViolation> violations;
};

}  // namespace wan
