// The cost of one rank among several that compute a forward together
// (engine/models/wan/shared_tokens.h). Pure functions without LibTorch; a change of that code
// belongs here as well, as in transformer_cost.h. Sizes are in bytes.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/share.h"

namespace wan {

// Fewest tokens for which exchanging heads in pieces pays: from there on the attention of some
// heads takes far longer than the exchange of the others, 0.6 ms and 0.1 ms on two H200 with 12
// heads each.
inline constexpr int64_t kFewestOverlappedTokens = 8192;

// Returns the number of pieces in which heads are exchanged for `tokens` tokens: 3 or, below
// `fewest_overlapped`, 1.
int64_t ExchangePieces(int64_t tokens, int64_t fewest_overlapped = kFewestOverlappedTokens);

// Returns the heads that belong to a piece, 0 to `pieces` - 1. Nothing is computed beside the first
// piece on its way there and the last one on its way back, so these have a quarter each; a piece of
// a few heads may be empty.
Share PieceOfHeads(const Share& heads, int64_t piece, int64_t pieces);

// Returns the most device memory that any of `ranks` ranks holds, its result included, for a
// forward of `batch` videos of `tokens` tokens each that they divide among them. One rank: what
// ForwardBytes says.
uint64_t SharedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                            int64_t ranks, int64_t element_bytes,
                            int64_t fewest_overlapped = kFewestOverlappedTokens);

// Returns the most device memory that any rank of a group of `ranks` devices holds for a forward of
// a job: with `guided`, for one with and one without the prompt, which an even number of ranks
// divides between its two halves (engine/models/group_transformer.h). One rank computes `batch`
// videos at a time.
uint64_t GroupForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                           int64_t ranks, int64_t element_bytes);

}  // namespace wan
