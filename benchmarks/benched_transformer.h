// A transformer and the inputs of one forward, for commands that measure it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/session.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct BenchedTransformer {
  at::Device device = at::kCPU;
  std::shared_ptr<ComponentWeights> weights;
  std::unique_ptr<RankTransformer> transformer;
  at::Tensor latents;   // [batch, in_channels, T, H, W], random numbers
  at::Tensor timestep;  // [batch, tokens]
  int64_t tokens = 0;   // number of tokens of one video

  // Returns `texts` random texts with `rows` tokens each, on the device of the latents.
  std::vector<at::Tensor> RandomTexts(int64_t texts, int64_t rows) const;
  // Returns text inputs, prepared for the transformer.
  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareTexts(int64_t texts,
                                                                       int64_t rows) const;
  // Returns the work of one forward.
  Work ForwardWork(const std::string& precision) const;
};

struct TransformerToBench {
  std::string model;  // the folder of a checkpoint, or synthetic:NAME
  std::string dtype = "bf16";
  BenchShape shape;
  int64_t batch = 1;
  bool first_frame = false;  // true: the first frame is given, so its tokens have timestep 0
  ComponentWeights::Home home = ComponentWeights::Home::kDevice;
};

// Loads the transformer to the device of the session, and prints how long that took.
absl::StatusOr<BenchedTransformer> LoadToBench(Session& session, const TransformerToBench& wanted);

// Replaces the inputs in `benched` by the inputs of another video. INVALID_ARGUMENT if the model
// does not accept the shape.
absl::Status SetShape(const VaeConfig& vae, const TransformerToBench& wanted,
                      BenchedTransformer& benched);

}  // namespace wan
