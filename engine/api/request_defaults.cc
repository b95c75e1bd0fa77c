#include "engine/api/request_defaults.h"

#include <optional>

namespace wan {
namespace {

template <typename T>
void Fill(const std::optional<T>& value, std::optional<T>& field) {
  if (!field.has_value()) field = value;
}

// Fills a text or list; an empty one counts as unset.
template <typename T>
void FillEmpty(const T& value, T& field) {
  if (field.empty()) field = value;
}

}  // namespace

void SetOperatorDefaults(const EngineOptions& options, GenerationRequest& defaults) {
  defaults.quality = options.quality.value_or(DefaultQuality(options.eight_bit_weights));
  defaults.vae_precision = options.vae_precision.value_or(VaePrecision::kFp32);
  defaults.decoder = Decoder::kFull;
  defaults.h264_crf = options.h264.crf;
}

void FillUnset(const GenerationRequest& defaults, GenerationRequest& request) {
  if (request.negative_prompt.value_or("").empty()) {
    request.negative_prompt = defaults.negative_prompt;
  }
  Fill(defaults.width, request.width);
  Fill(defaults.height, request.height);
  Fill(defaults.num_frames, request.num_frames);
  Fill(defaults.fps, request.fps);
  Fill(defaults.steps, request.steps);
  FillEmpty(defaults.guidance_scale, request.guidance_scale);
  Fill(defaults.shift, request.shift);
  FillEmpty(defaults.solver, request.solver);
  FillEmpty(defaults.outputs, request.outputs);
  Fill(defaults.quality, request.quality);
  Fill(defaults.vae_precision, request.vae_precision);
  Fill(defaults.decoder, request.decoder);
  Fill(defaults.h264_crf, request.h264_crf);
}

}  // namespace wan
