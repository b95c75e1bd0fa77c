// The one description of the transformer's cost, from its dimensions alone: groups of weights,
// memory while it computes, floating-point operations. Pure functions without LibTorch. They follow
// transformer_weights.cc and transformer.cc tensor by tensor, so a change there belongs here, too;
// tests/engine/models/wan/transformer_cost_test.cc compares them with what the code allocates.
// Sizes are in bytes; `element_bytes` is the size of the compute dtype.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups: the weights outside of the blocks; for each block those of the text's keys
// and values; for each block the rest.
WeightGroups TransformerWeightGroups(const TransformerConfig& config);

// Returns the memory that TextConditioning holds for `texts` texts.
uint64_t TextConditioningBytes(const TransformerConfig& config, int64_t texts,
                               int64_t element_bytes);

// Returns the memory that VideoTransformer::PrepareText of `batch` texts holds besides its result.
uint64_t TextPreparationBytes(const TransformerConfig& config, int64_t batch,
                              int64_t element_bytes);

// Returns the memory that VideoTransformer::Forward of `batch` videos of `tokens` tokens each
// holds, its result included, at up to two distinct timesteps.
uint64_t ForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                      int64_t element_bytes);

// Floating-point operations of one block, for `batch` videos of `tokens` tokens each.
struct BlockFlops {
  double self_attention = 0;
  double rest = 0;  // cross-attention and feed-forward layers
};
BlockFlops TransformerBlockFlops(const TransformerConfig& config, int64_t tokens, int64_t batch);

// Floating-point operations of one block's keys and values of `batch` texts, computed once a job.
double TextBlockFlops(const TransformerConfig& config, int64_t batch);

// Floating-point operations of VideoTransformer::Forward of `batch` videos of `tokens` tokens each.
double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens, int64_t batch = 1);

}  // namespace wan
