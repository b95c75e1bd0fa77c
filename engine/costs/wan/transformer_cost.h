// The transformer's cost, computed from its dimensions alone: groups of weights, memory during
// computation, floating-point operations. Pure functions without LibTorch. They mirror
// transformer_weights.cc and transformer.cc of engine/models/wan tensor by tensor, so change both
// together; tests/engine/costs/wan/transformer_cost_test.cc compares them with what the code
// allocates. Sizes are in bytes; `element_bytes` is per element of the compute dtype.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/operator_work.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups: weights outside the blocks; per block, keys and values of the text; per
// block, the rest.
WeightGroups TransformerWeightGroups(const TransformerConfig& config);

// Returns the memory that TextConditioning holds for `texts` texts.
uint64_t TextConditioningBytes(const TransformerConfig& config, int64_t texts,
                               int64_t element_bytes);

// Returns the memory that VideoTransformer::PrepareText needs for `batch` texts besides its result.
uint64_t TextPreparationBytes(const TransformerConfig& config, int64_t batch,
                              int64_t element_bytes);

// Returns the memory that VideoTransformer::Forward needs for `batch` videos of `tokens` tokens,
// including its result, with at most two distinct timesteps.
uint64_t ForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                      int64_t element_bytes);

// Returns an upper bound of what a forward of 8 bits (ForwardPolicy) needs besides: the rounded
// weights of one product, and scales. The rounded activations are where the others would be.
uint64_t RoundingBytes(const TransformerConfig& config, int64_t tokens, int64_t batch);

// Forwards with more floating-point operations are not recorded as graphs (forward_graphs.h),
// because launches take less time than their kernels: 3 ms against 8 ms for 30 blocks on an H200.
inline constexpr double kMostGraphedFlops = 5e12;

// Returns the memory that a recorded forward of this size keeps: inputs with a copy of the text,
// the result, and the kernels' memory. 0 if it is too large to be recorded.
uint64_t RecordedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                              int64_t element_bytes);

// Floating-point operations of one block for `batch` videos of `tokens` tokens.
struct BlockFlops {
  double self_attention = 0;
  double rest = 0;  // cross-attention and feed-forward layers
};
BlockFlops TransformerBlockFlops(const TransformerConfig& config, int64_t tokens, int64_t batch);

// The operators of a block in execution order. The last one adds the feed-forward's output to the
// residual stream and applies the next block's norm; a forward's last block does not have it.
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

// Returns the work of each BlockStep for `batch` videos of `tokens` tokens.
std::vector<BlockOperator> BlockOperators(const TransformerConfig& config, int64_t tokens,
                                          int64_t batch, int64_t element_bytes);

// Returns BlockOperators summed by class, in order of first execution. The operations add up to
// TransformerBlockFlops.
std::vector<OperatorWork> TransformerBlockOperators(const TransformerConfig& config, int64_t tokens,
                                                    int64_t batch, int64_t element_bytes);

// Limits, in floating-point operations, for running a self-attention as one kernel, which cannot be
// stopped. Up to `whole` it is one call; beyond that its queries are divided into parts of about
// `part`. The defaults are for GPUs: 0.3 s on an H200, or 100,000 tokens of an A14B model.
struct AttentionLimits {
  double whole = 2e14;
  double part = 1e14;
  int64_t fewest_queries = 1;  // minimum queries per part; a shorter remainder joins the last part
};

// For CPUs: a part takes about 0.2 s on two cores.
inline constexpr AttentionLimits kCpuAttentionLimits = {
    .whole = 1e10, .part = 1e10, .fewest_queries = 768};

// Returns how many queries of a self-attention over `tokens` tokens are computed at a time: all, or
// a multiple of 256 that makes the parts about equal.
int64_t QueriesAtATime(const TransformerConfig& config, int64_t tokens,
                       const AttentionLimits& limits = {});

// Floating-point operations of attention from `queries` queries to `keys` keys.
double AttentionFlops(const TransformerConfig& config, int64_t queries, int64_t keys);

// Floating-point operations of a block's keys and values for `batch` texts, which a job computes
// once.
double TextBlockFlops(const TransformerConfig& config, int64_t batch);

// Floating-point operations of VideoTransformer::Forward for `batch` videos of `tokens` tokens.
double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens, int64_t batch = 1);

}  // namespace wan
