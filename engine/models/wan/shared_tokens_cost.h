// What one rank of several takes that compute a forward together (shared_tokens.h). Pure functions
// without LibTorch, beside which the code has to stay as transformer_cost.h says; sizes are in
// bytes.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"

namespace wan {

// Returns the most device memory that any of `ranks` ranks holds, its result included, for a
// forward of `batch` videos of `tokens` tokens each that they divide among them. One rank: what
// ForwardBytes says.
uint64_t SharedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                            int64_t ranks, int64_t element_bytes);

// Returns the most device memory that any rank of a group of `ranks` devices holds for a forward of
// a job: with `guided`, for one with and one without the prompt, which an even number of ranks
// divides between its two halves (engine/models/group_transformer.h). One rank computes `batch`
// videos at a time.
uint64_t GroupForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                           int64_t ranks, int64_t element_bytes);

}  // namespace wan
