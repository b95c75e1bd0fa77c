// The one description of the text encoder's cost, from its dimensions alone: groups of weights,
// memory while it computes, floating-point operations. Pure functions without LibTorch. They follow
// engine/models/wan/umt5.cc tensor by tensor, so a change there belongs here as well;
// tests/engine/costs/wan/umt5_cost_test.cc compares them with what the code allocates. Sizes are in
// bytes; `element_bytes` is the size of the compute dtype.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups: the token table and the last norm; then each block.
WeightGroups TextEncoderWeightGroups(const TextEncoderConfig& config);

// Returns the memory that TextEncoder::Encode of `tokens` ids holds, its result included.
uint64_t TextEncodingBytes(const TextEncoderConfig& config, int64_t tokens, int64_t element_bytes);

// Floating-point operations of TextEncoder::Encode of `tokens` ids.
double TextEncoderFlops(const TextEncoderConfig& config, int64_t tokens);

}  // namespace wan
