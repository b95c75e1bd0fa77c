// The results of inspecting a request's texts, image and latents before planning
// (engine/pipeline/preprocess.h). MakePlan reads only this, not the texts and files themselves.
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
  // The number of tokens, with the end mark, before they are cut. Absent if the text could not be
  // read; for the negative prompt also if the model does not use guidance.
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> negative_prompt_tokens;
  // The image's size as displayed; absent if there is no image or the image could not be read.
  std::optional<ImageSize> image;
  // Maximum host memory, in bytes, that decoding the image takes.
  int64_t image_decoding_bytes = 0;
  // The shapes of the request's latents; absent if there are none or they could not be read.
  std::optional<std::vector<int64_t>> initial_latents;
  std::optional<std::vector<int64_t>> latents;
  // The object that inspecting has made for the job; planning passes it to the pipeline unchanged.
  std::shared_ptr<const PreparedRequest> prepared;
  // Errors that were found in the request, for example a broken image.
  std::vector<FieldViolation> violations;
};

}  // namespace wan
