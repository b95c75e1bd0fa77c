// The ranges of dimensions that are accepted. Config files and shapes are not trusted. Lists of
// tensors and products are computed from dimensions, and must not overflow or exhaust memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace wan {

inline constexpr int64_t kMaxWidth = int64_t{1} << 20;  // maximum number of features or channels
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxPatch = 16;
inline constexpr int64_t kMaxStages = 8;
inline constexpr int64_t kMaxMultiplier = 64;
inline constexpr int64_t kMaxResBlocks = 16;
inline constexpr int64_t kMaxFewSteps = 1000;

// Returns one sentence for each contradiction between the dimensions; none if they are consistent.
std::vector<std::string> Contradictions(const TransformerConfig& config);
std::vector<std::string> Contradictions(const TextEncoderConfig& config);
std::vector<std::string> Contradictions(const VaeConfig& config);
std::vector<std::string> Contradictions(const TinyDecoderConfig& config);
std::vector<std::string> Contradictions(const FewStepConfig& config);

}  // namespace wan
