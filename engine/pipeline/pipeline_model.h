// The parts of a loaded model that the pipeline computes with.
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

// The pipeline borrows the parts for one generation and brings their weights to where the plan
// says. Null weights mean that a component always has its weights.
struct PipelineModel {
  PlannedModel planned;
  std::unique_ptr<Tokenizer> tokenizer;  // null for synthetic checkpoints
  std::unique_ptr<TextEncoder> text_encoder;
  std::shared_ptr<ComponentWeights> text_encoder_weights;
  std::vector<Expert> experts;
  std::unique_ptr<VideoAutoencoder> vae;
  std::shared_ptr<ComponentWeights> vae_weights;
  c10::Device device = c10::kCPU;  // of latents and noise
};

}  // namespace wan
