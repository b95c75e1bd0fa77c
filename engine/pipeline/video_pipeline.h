// Runs one generation from plan to files, in the order of the method: texts and image, noise,
// denoising, decoding.
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

// Callbacks with which a test or a profiler sees intermediate results. Every member may be empty.
struct PipelineTaps {
  std::function<void(const at::Tensor& prompt_embeds, const at::Tensor& negative_prompt_embeds)>
      texts;
  std::function<void(const at::Tensor& noise)> noise;
  // The image as the VAE took it, and its encoding.
  std::function<void(const at::Tensor& image, const EncodedImage& encoded)> image;
  std::function<void(const DenoiseState& state)> step;
  std::function<void(const at::Tensor& frames)> frames;  // [3, n, H, W] in [-1, 1]
};

// Carries out a plan that Engine::Plan made. Statuses as in Engine::Generate; throws what LibTorch
// throws (Engine catches it), except where memory ends while the video is decoded: then the same
// latents are decoded again, in smaller tiles.
absl::Status RunVideoPipeline(const GenerationPlan& plan, const PipelineModel& model,
                              std::span<const OutputFile> outputs, Recorder& recorder,
                              GenerationObserver& observer, std::stop_token stop,
                              SavepointKeeper* savepoints, const PipelineTaps& taps = {});

}  // namespace wan
