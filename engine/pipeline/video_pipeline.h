// One generation from request to files, written as the method reads: texts and image, noise,
// denoising, decoding.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/engine.h"
#include "engine/models/text_encoder.h"
#include "engine/models/video_autoencoder.h"
#include "engine/models/video_transformer.h"
#include "engine/pipeline/denoise_loop.h"
#include "engine/pipeline/image_input.h"
#include "engine/planning/planned_model.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/lora_library.h"

namespace wan {

// One of a model's transformers.
struct Expert {
  ExpertRole role = ExpertRole::kOnly;
  ModelComponent component = ModelComponent::kTransformer;
  std::unique_ptr<VideoTransformer> transformer;
  std::shared_ptr<ComponentWeights> weights;
  std::shared_ptr<LoraLibrary> loras = nullptr;  // null: none
};

// A model's parts. The pipeline borrows them for one generation, and has their weights where the
// plan says. Null weights: always there.
struct PipelineModel {
  PlannedModel planned;
  std::unique_ptr<Tokenizer> tokenizer;  // null for synthetic checkpoints
  std::unique_ptr<TextEncoder> text_encoder;
  std::shared_ptr<ComponentWeights> text_encoder_weights;
  std::vector<Expert> experts;
  std::unique_ptr<VideoAutoencoder> vae;
  std::shared_ptr<ComponentWeights> vae_weights;
  at::Device device = at::kCPU;  // of latents and noise
};

// What a test or a profiler wants to see on the way; every member may be empty.
struct PipelineTaps {
  std::function<void(const at::Tensor& prompt_embeds, const at::Tensor& negative_prompt_embeds)>
      texts;
  std::function<void(const at::Tensor& noise)> noise;
  // The image as the VAE took it and what it became.
  std::function<void(const at::Tensor& image, const EncodedImage& encoded)> image;
  std::function<void(const DenoiseState& state)> step;
  std::function<void(const at::Tensor& frames)> frames;  // [3, n, H, W] in [-1, 1]
};

// Statuses as in Engine::Generate; throws what LibTorch throws (Engine catches it), but for memory
// that ends while the video is decoded: then the same latents are decoded again, in smaller tiles.
absl::Status RunVideoPipeline(const GenerationPlan& plan, const PipelineModel& model,
                              std::span<const OutputFile> outputs, Recorder& recorder,
                              GenerationObserver& observer, std::stop_token stop,
                              const PipelineTaps& taps = {});

}  // namespace wan
