// The text encoder's cost, computed from its dimensions alone: groups of weights, memory during
// computation, floating-point operations. Pure functions without LibTorch. They mirror
// engine/models/wan/umt5.cc tensor by tensor, so change both together;
// tests/engine/costs/wan/umt5_cost_test.cc compares them with what the code allocates. Sizes are in
// bytes; `element_bytes` is per element of the compute dtype.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups: the token table and the last norm; then one per block.
WeightGroups TextEncoderWeightGroups(const TextEncoderConfig& config);

// Returns the memory that TextEncoder::Encode needs for `tokens` tokens, including its result.
uint64_t TextEncodingBytes(const TextEncoderConfig& config, int64_t tokens, int64_t element_bytes);

// Floating-point operations of TextEncoder::Encode for `tokens` tokens.
double TextEncoderFlops(const TextEncoderConfig& config, int64_t tokens);

}  // namespace wan
