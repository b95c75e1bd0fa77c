// One generation from request to files, written as the method reads: texts and image, noise,
// denoising, decoding.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "engine/api/engine.h"
#include "engine/models/text_encoder.h"
#include "engine/models/video_autoencoder.h"
#include "engine/models/video_transformer.h"
#include "engine/pipeline/denoise_loop.h"
#include "engine/pipeline/plan.h"
#include "engine/text/tokenizer.h"

namespace wan {

// A resident model's parts. The pipeline borrows them for one generation.
struct PipelineModel {
  PlannedModel planned;
  std::unique_ptr<Tokenizer> tokenizer;  // null for synthetic checkpoints
  std::unique_ptr<TextEncoder> text_encoder;
  std::unique_ptr<VideoTransformer> transformer;
  std::unique_ptr<VideoAutoencoder> vae;
  at::Device device = at::kCPU;
};

// What a test or a profiler wants to see on the way; every member may be empty.
struct PipelineTaps {
  std::function<void(const at::Tensor& prompt_embeds, const at::Tensor& negative_prompt_embeds)>
      texts;
  std::function<void(const at::Tensor& noise)> noise;
  std::function<void(const at::Tensor& first_frame, const at::Tensor& latents)> first_frame;
  std::function<void(const DenoiseState& state)> step;
  std::function<void(const at::Tensor& frames)> frames;  // [3, n, H, W] in [-1, 1]
};

// Statuses as in Engine::Generate; throws what LibTorch throws (Engine catches it).
absl::Status RunVideoPipeline(const GenerationPlan& plan, const PipelineModel& model,
                              std::span<const OutputFile> outputs, Recorder& recorder,
                              GenerationObserver& observer, std::stop_token stop,
                              const PipelineTaps& taps = {});

}  // namespace wan
