// Computes what the text encoder costs from its dimensions alone: groups of weights, memory during
// computation, floating-point operations. All functions are pure and need no LibTorch. The
// functions mirror engine/models/wan/umt5.cc tensor by tensor, so change both together;
// tests/engine/costs/wan/umt5_cost_test.cc compares them with what the code allocates. All sizes
// are in bytes; `element_bytes` is the size of one element of the compute dtype.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups of weights: first the token table and the last norm, then one group per block.
// With `eight_bits` the matrices have 8 bits.
WeightGroups TextEncoderWeightGroups(const TextEncoderConfig& config, bool eight_bits);

// Returns the device memory that TextEncoder::Encode needs for `tokens` tokens, including its
// result.
uint64_t TextEncodingBytes(const TextEncoderConfig& config, int64_t tokens, int64_t element_bytes);

// Returns an upper bound of the additional memory if matrices have 8 bits: the largest matrix,
// converted back for its product.
uint64_t RestoredMatrixBytes(const TextEncoderConfig& config, int64_t element_bytes);

// Returns the floating-point operations of TextEncoder::Encode for `tokens` tokens.
double TextEncoderFlops(const TextEncoderConfig& config, int64_t tokens);

}  // namespace wan
