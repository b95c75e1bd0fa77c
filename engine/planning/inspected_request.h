// What preprocessing found out about a request's texts and image. MakePlan reads only this.
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
  // Number of tokens with the end mark, before they are cut. Absent if the text could not be read;
  // for the negative prompt also if the model has no guidance.
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> negative_prompt_tokens;
  // Size of the image as displayed; absent if there is none or it could not be read.
  std::optional<ImageSize> image;
  // Most host memory for decoding the image.
  int64_t image_decoding_bytes = 0;
  // The tokens, which planning passes on to the pipeline.
  std::shared_ptr<const PreparedRequest> prepared;
  // Errors that were found, for example a broken image.
  std::vector<FieldViolation> violations;
};

}  // namespace wan
