// Which dimensions make sense. Config files and shapes are untrusted: what is computed from them
// later (lists of tensors, products of extents) must neither overflow nor exhaust the memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace wan {

inline constexpr int64_t kMaxWidth = int64_t{1} << 20;  // any number of features or channels
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxPatch = 16;
inline constexpr int64_t kMaxStages = 8;
inline constexpr int64_t kMaxMultiplier = 64;
inline constexpr int64_t kMaxResBlocks = 16;
inline constexpr int64_t kMaxFewSteps = 1000;

// What is wrong with the dimensions among each other, one sentence each; empty if nothing is.
std::vector<std::string> Contradictions(const TransformerConfig& config);
std::vector<std::string> Contradictions(const TextEncoderConfig& config);
std::vector<std::string> Contradictions(const VaeConfig& config);
std::vector<std::string> Contradictions(const FewStepConfig& config);

}  // namespace wan
