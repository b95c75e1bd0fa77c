// The one description of the transformer's cost, from its dimensions alone: groups of weights,
// memory while it computes, floating-point operations. Pure functions without LibTorch. They follow
// transformer_weights.cc and transformer.cc of engine/models/wan tensor by tensor, so a change
// there belongs here as well; tests/engine/costs/wan/transformer_cost_test.cc compares them with
// what the code allocates. Sizes are in bytes; `element_bytes` is the size of the compute dtype.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/operator_work.h"
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

// Forwards with more floating-point operations than this are not recorded as graphs
// (forward_graphs.h): the launches of their kernels take a GPU less time than the kernels, 3 ms for
// 30 blocks beside 8 ms on an H200.
inline constexpr double kMostGraphedFlops = 5e12;

// Returns the memory that the transformer keeps between forwards for a recorded one of this size:
// its inputs with a copy of the text, its result, and what its kernels compute in. 0 if it is too
// large to be recorded.
uint64_t RecordedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                              int64_t element_bytes);

// Floating-point operations of one block, for `batch` videos of `tokens` tokens each.
struct BlockFlops {
  double self_attention = 0;
  double rest = 0;  // cross-attention and feed-forward layers
};
BlockFlops TransformerBlockFlops(const TransformerConfig& config, int64_t tokens, int64_t batch);

// The operators of a block, in the order in which it runs them. The sum of the feed-forward and the
// residual stream, with the norm for the next block, is the last one; the last block of a forward
// has none.
enum class BlockStep : size_t {
  kQueriesKeysValues,
  kQueryKeyNorm,
  kSelfAttention,
  kAttentionOutput,
  kAttentionResidual,
  kTextQueries,
  kTextQueryNorm,
  kTextAttention,
  kTextOutput,
  kTextResidual,
  kFeedForwardIn,
  kFeedForwardOut,
  kNextWeights,
  kFeedForwardResidual,
};

// Returns the work of each BlockStep, for `batch` videos of `tokens` tokens each.
std::vector<BlockOperator> BlockOperators(const TransformerConfig& config, int64_t tokens,
                                          int64_t batch, int64_t element_bytes);

// Returns the sums of the same by class, in the order in which a block runs them first. Their
// operations add up to TransformerBlockFlops.
std::vector<OperatorWork> TransformerBlockOperators(const TransformerConfig& config, int64_t tokens,
                                                    int64_t batch, int64_t element_bytes);

// Limits, in floating-point operations, of a self-attention that is one kernel and so cannot be
// stopped. Up to `whole` a call stays in one piece; beyond, its queries are divided into parts of
// about `part`. The default is for GPUs: 0.3 s on an H200, 100,000 tokens of an A14B.
struct AttentionLimits {
  double whole = 2e14;
  double part = 1e14;
  int64_t fewest_queries = 1;  // minimum queries per part; a shorter remainder joins the last part
};

// For CPUs: a part takes two cores some 0.2 s.
inline constexpr AttentionLimits kCpuAttentionLimits = {
    .whole = 1e10, .part = 1e10, .fewest_queries = 768};

// The queries of a self-attention over `tokens` tokens that are computed at a time: all of them, or
// a multiple of 256, about the same for every part.
int64_t QueriesAtATime(const TransformerConfig& config, int64_t tokens,
                       const AttentionLimits& limits = {});

// Floating-point operations of the attention of `queries` queries to `keys` keys.
double AttentionFlops(const TransformerConfig& config, int64_t queries, int64_t keys);

// Floating-point operations of one block's keys and values of `batch` texts, computed once a job.
double TextBlockFlops(const TransformerConfig& config, int64_t batch);

// Floating-point operations of VideoTransformer::Forward of `batch` videos of `tokens` tokens each.
double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens, int64_t batch = 1);

}  // namespace wan
