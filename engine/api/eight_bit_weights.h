// Which components keep their weights in 8 bits: matrices as e4m3 with an fp32 scale per output
// channel, about half of their memory in bf16.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/quality.h"

namespace wan {

struct EightBitWeights {
  // The matrices of the transformers' blocks. Videos of quality kHigh and kFast have the same bits
  // as without this setting, because these jobs round the matrices before each product anyway.
  // Quality kExact is not possible.
  bool transformers = false;
  // The text encoder's matrices. The engine converts them back to the compute dtype for each
  // product. This changes the bits of every video.
  bool text_encoder = false;

  bool operator==(const EightBitWeights& other) const = default;
};

struct EightBitPart {
  std::string_view name;  // in settings, on the wire and in receipts
  bool EightBitWeights::*member;
};

inline constexpr std::array<EightBitPart, 2> kEightBitParts = {{
    {"transformers", &EightBitWeights::transformers},
    {"text_encoder", &EightBitWeights::text_encoder},
}};

// Returns the names of the parts that are in 8 bits, in the order of kEightBitParts.
inline std::vector<std::string> NamesOf(const EightBitWeights& weights) {
  std::vector<std::string> names;
  for (const EightBitPart& part : kEightBitParts) {
    if (weights.*part.member) names.emplace_back(part.name);
  }
  return names;
}

// Puts the component called `name` into 8 bits. Returns false if no component has this name.
inline bool SetEightBitPart(std::string_view name, EightBitWeights& weights) {
  for (const EightBitPart& part : kEightBitParts) {
    if (part.name != name) continue;
    weights.*part.member = true;
    return true;
  }
  return false;
}

// Returns the quality of requests for which neither the request nor the operator chooses a quality.
constexpr Quality DefaultQuality(const EightBitWeights& weights) {
  return weights.transformers ? Quality::kHigh : Quality::kExact;
}

}  // namespace wan
