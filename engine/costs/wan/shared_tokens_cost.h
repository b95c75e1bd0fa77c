// The cost of one rank of several that share a forward (engine/models/wan/shared_tokens.h). Pure
// functions without LibTorch; change them together with that code, as in transformer_cost.h. Sizes
// are in bytes.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/share.h"

namespace wan {

// Fewest tokens for which exchanging heads in pieces pays off: the attention of some heads then
// takes far longer than the exchange of others (0.6 ms and 0.1 ms on two H200 with 12 heads each).
inline constexpr int64_t kFewestOverlappedTokens = 8192;

// Returns in how many pieces heads are exchanged: 3 or, with fewer than `fewest_overlapped` tokens,
// 1.
int64_t ExchangePieces(int64_t tokens, int64_t fewest_overlapped = kFewestOverlappedTokens);

// Returns the heads of piece number `piece` (from 0). The first piece's arrival and the last one's
// departure overlap with no computation, so these two get a quarter of the heads each; pieces of
// few heads may be empty.
Share PieceOfHeads(const Share& heads, int64_t piece, int64_t pieces);

// Returns the most device memory that any rank holds, including its result, in a forward of `batch`
// videos of `tokens` tokens that `ranks` ranks share. With one rank this is ForwardBytes.
uint64_t SharedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                            int64_t ranks, int64_t element_bytes,
                            int64_t fewest_overlapped = kFewestOverlappedTokens);

// Returns the most device memory that any rank of a group holds in a job's forwards. With `guided`,
// a step has a forward with and one without the prompt, which an even number of ranks computes in
// two halves (engine/models/group_transformer.h). A single rank computes `batch` videos at a time.
uint64_t GroupForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                           int64_t ranks, int64_t element_bytes);

}  // namespace wan
