// Computes what one rank of a shared forward costs (engine/models/wan/shared_tokens.h). All
// functions are pure and need no LibTorch; change them together with that code, as described in
// transformer_cost.h. All sizes are in bytes.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/share.h"

namespace wan {

// The fewest tokens for which exchanging heads in pieces pays off. At this number, the attention of
// one piece already takes far longer than the exchange of another (0.6 ms and 0.1 ms on two H200
// with 12 heads each).
inline constexpr int64_t kFewestOverlappedTokens = 8192;

// Returns the number of pieces in which heads are exchanged: 3, or 1 if there are fewer than
// `fewest_overlapped` tokens.
int64_t ExchangePieces(int64_t tokens, int64_t fewest_overlapped = kFewestOverlappedTokens);

// Returns the heads of piece number `piece` (from 0). A rank computes nothing while the first piece
// arrives and while the last piece departs. So these two pieces get only a quarter of the heads
// each. If there are few heads, pieces may be empty.
Share PieceOfHeads(const Share& heads, int64_t piece, int64_t pieces);

// Returns the most device memory that any rank holds, including its result, in a forward of `batch`
// videos of `tokens` tokens that `ranks` ranks share. With one rank the result equals ForwardBytes.
uint64_t SharedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                            int64_t ranks, int64_t element_bytes,
                            int64_t fewest_overlapped = kFewestOverlappedTokens);

// Returns the most device memory that any rank of a group holds in a job's forwards. With `guided`,
// a step has one forward with the prompt and one without. If the number of ranks is even, each half
// of the ranks computes one of the two forwards (engine/models/group_transformer.h). If there is
// only one rank, it computes `batch` videos at a time.
uint64_t GroupForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                           int64_t ranks, int64_t element_bytes);

}  // namespace wan
