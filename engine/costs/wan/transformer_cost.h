// Computes what the transformer costs from its dimensions alone: groups of weights, memory during
// computation, floating-point operations. All functions are pure and need no LibTorch. The
// functions mirror transformer_weights.cc and transformer.cc of engine/models/wan tensor by tensor,
// so change both together; tests/engine/costs/wan/transformer_cost_test.cc compares them with what
// the code allocates. All sizes are in bytes; `element_bytes` is the size of one element of the
// compute dtype.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/operator_work.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups: the weights outside the blocks; then one group per block for the text's keys
// and values; then one group per block for the block's other weights. With `eight_bits` the
// matrices in the last groups have 8 bits, except in `exact_blocks`, which must be in rising order.
WeightGroups TransformerWeightGroups(const TransformerConfig& config, bool eight_bits,
                                     const std::vector<int>& exact_blocks = {});

// Returns the device memory that TextConditioning holds for `texts` texts.
uint64_t TextConditioningBytes(const TransformerConfig& config, int64_t texts,
                               int64_t element_bytes);

// Returns the device memory in which a step with `texts` texts keeps what its blocks added
// (BlockUse::kComputeAndKeep), on each of `ranks` ranks that share the step's tokens.
uint64_t KeptBlocksBytes(const TransformerConfig& config, int64_t tokens, int64_t texts,
                         int64_t ranks);

// Returns the device memory that VideoTransformer::PrepareText needs for `batch` texts in addition
// to its result.
uint64_t TextPreparationBytes(const TransformerConfig& config, int64_t batch,
                              int64_t element_bytes);

// Returns the device memory that VideoTransformer::Forward needs for `batch` videos of `tokens`
// tokens, including its result, if there are at most two distinct timesteps.
uint64_t ForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                      int64_t element_bytes);

// Keys in a tile of the attention of 8 bits (kRoundedKeyTile of engine/ops/rounded_attention.h).
inline constexpr int64_t kKeysOfTile = 128;

// Returns an upper bound of the memory that a forward of 8 bits (ForwardPolicy) needs on a GPU in
// addition to ForwardBytes: the rounded weights of one product or the rounded values of the
// attention, and scales. All other rounded activations use the memory of the exact activations.
uint64_t RoundingBytes(const TransformerConfig& config, int64_t tokens, int64_t batch);

// The maximum number of floating-point operations of a forward that is recorded as a graph
// (forward_graphs.h). In a larger forward the launches take less time than the kernels (3 ms
// against 8 ms for 30 blocks on an H200), so a graph would gain nothing.
inline constexpr double kMostGraphedFlops = 5e12;

// Returns the device memory that a recorded forward of this size keeps: its inputs with a copy of
// the text, its result, and its kernels' memory. Returns 0 if the forward is too large to be
// recorded.
uint64_t RecordedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                              int64_t element_bytes);

// The floating-point operations of one block for `batch` videos of `tokens` tokens.
struct BlockFlops {
  double self_attention = 0;
  double rest = 0;  // operations of the cross-attention and the feed-forward layers
};
BlockFlops TransformerBlockFlops(const TransformerConfig& config, int64_t tokens, int64_t batch);

// The operators of a block in execution order. The last operator adds the feed-forward layers'
// output to the residual stream and applies the next block's norm. A forward's last block lacks
// this operator.
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

// Returns the sums of BlockOperators for each class of operators, in the order in which classes
// first run. The operations of all classes add up to TransformerBlockFlops.
std::vector<OperatorWork> TransformerBlockOperators(const TransformerConfig& config, int64_t tokens,
                                                    int64_t batch, int64_t element_bytes);

// Maximum number of floating-point operations of a self-attention that run as one kernel, which
// cannot be stopped. An attention of up to `whole` operations is one kernel. The queries of a
// larger attention are divided into parts of about `part` operations. The defaults are for GPUs:
// 0.3 s on an H200, which is the attention over 100,000 tokens of an A14B model.
struct AttentionLimits {
  double whole = 2e14;
  double part = 1e14;
  int64_t fewest_queries = 1;  // fewest queries of a part; a shorter remainder joins the last part
};

// The limits for CPUs: a part takes about 0.2 s on two cores.
inline constexpr AttentionLimits kCpuAttentionLimits = {
    .whole = 1e10, .part = 1e10, .fewest_queries = 768};

// Returns how many queries of a self-attention over `tokens` tokens run at a time: all of them, or
// a multiple of 256 that makes the parts about equal.
int64_t QueriesAtATime(const TransformerConfig& config, int64_t tokens,
                       const AttentionLimits& limits = {});

// Returns the floating-point operations of the attention of `queries` queries to `keys` keys.
double AttentionFlops(const TransformerConfig& config, int64_t queries, int64_t keys);

// Returns the floating-point operations that compute a block's keys and values for `batch` texts,
// which a job does only once.
double TextBlockFlops(const TransformerConfig& config, int64_t batch);

// Returns the floating-point operations of a forward's patch embedding and head: all the work of a
// forward that reuses the blocks' work.
double TransformerEndsFlops(const TransformerConfig& config, int64_t tokens, int64_t batch = 1);

// Returns the floating-point operations of VideoTransformer::Forward for `batch` videos of `tokens`
// tokens.
double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens, int64_t batch = 1);

}  // namespace wan
