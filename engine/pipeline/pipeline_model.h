// The parts of a loaded model with which the pipeline computes.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/models/text_encoder.h"
#include "engine/models/video_autoencoder.h"
#include "engine/pipeline/expert.h"
#include "engine/planning/planned_model.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/component_weights.h"

namespace wan {

// The pipeline uses the parts for one generation and moves their weights as the plan says. If a
// component's `weights` are null, they never move. A copy shares all parts except the LoRAs' names.
struct PipelineModel {
  PlannedModel planned;
  std::shared_ptr<Tokenizer> tokenizer;  // null for a synthetic checkpoint
  std::shared_ptr<TextEncoder> text_encoder;
  std::shared_ptr<ComponentWeights> text_encoder_weights;
  std::vector<Expert> experts;
  std::shared_ptr<VideoAutoencoder> vae;
  std::shared_ptr<ComponentWeights> vae_weights;
  c10::Device device = c10::kCPU;  // the device of latents and noise
};

}  // namespace wan
