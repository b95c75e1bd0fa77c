// The diffusion transformer of Wan2.2, all sizes: upstream's wan/modules/model.py (WanModel). How a
// block is computed, and in which dtypes, is in docs/transformer.md.
#pragma once

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct TransformerOptions {
  at::Device device = at::kCPU;
  // fp32, or bf16 for the weights and products of the blocks and the text projection and for the
  // inputs of the attention. Everything else is fp32 always: residual stream, norms, modulation,
  // time and patch embedding, head.
  at::ScalarType dtype = at::kFloat;
  // Where the weights are entered, to be moved; null: they stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // Ends the loading with CANCELLED.
  std::stop_token stop = {};
};

// Copies the weights to options.device; `weights` is not needed afterwards. A tensor that is
// missing or of another shape gives the weight loader's status, a dtype that is neither fp32 nor
// bf16 INVALID_ARGUMENT, a config without norms of queries and keys or before the cross-attention
// UNIMPLEMENTED.
absl::StatusOr<std::unique_ptr<VideoTransformer>> LoadWanTransformer(
    const WeightSource& weights, const TransformerConfig& config,
    const TransformerOptions& options);

}  // namespace wan
