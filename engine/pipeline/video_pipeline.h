// Runs one generation from plan to files: texts and image, noise, denoising, decoding.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "engine/api/engine.h"
#include "engine/api/recorder.h"
#include "engine/pipeline/denoise_loop.h"
#include "engine/pipeline/image_input.h"
#include "engine/pipeline/pipeline_model.h"

namespace wan {

// Callbacks for tests and profilers that show intermediate results; each may be empty.
struct PipelineTaps {
  std::function<void(const at::Tensor& prompt_embeds, const at::Tensor& negative_prompt_embeds)>
      texts;
  std::function<void(const at::Tensor& noise)> noise;
  // The VAE's input image, and the result of encoding it.
  std::function<void(const at::Tensor& image, const EncodedImage& encoded)> image;
  std::function<void(const DenoiseState& state)> step;
  std::function<void(const at::Tensor& frames)> frames;  // [3, n, H, W] in [-1, 1]
};

// Carries out a plan that Engine::Plan made. Returns the statuses of Engine::Generate. LibTorch's
// exceptions pass through to Engine, except that if memory runs out in decoding, the same latents
// are decoded again in smaller tiles.
absl::Status RunVideoPipeline(const GenerationPlan& plan, const PipelineModel& model,
                              std::span<const OutputFile> outputs, Recorder& recorder,
                              GenerationObserver& observer, std::stop_token stop,
                              SavepointKeeper* savepoints, const PipelineTaps& taps = {});

}  // namespace wan
