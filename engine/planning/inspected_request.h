// The facts of a request's texts and image, found by preprocessing. MakePlan reads this, and never
// the texts or the image themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/errors.h"
#include "engine/api/generation.h"
#include "engine/media/rgb_image.h"

namespace wan {

struct InspectedRequest {
  // The number of tokens with the end mark, before any cut. Absent if the text could not be read,
  // and for the negative prompt of a model without guidance.
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> negative_prompt_tokens;
  // The size of the image as it is shown; absent if there is none or it could not be read.
  std::optional<ImageSize> image;
  // The most host memory that decoding it takes.
  int64_t image_decoding_bytes = 0;
  // The tokens themselves; planning passes them on to the pipeline.
  std::shared_ptr<const PreparedRequest> prepared;
  // The errors that were found, for example a broken image.
  std::vector<FieldViolation> violations;
};

}  // namespace wan
