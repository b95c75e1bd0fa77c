// How exactly a video is computed.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace wan {

enum class Quality {
  // The published method in the engine's dtype.
  kExact,
  // Transformer products and self-attention take inputs of 8 bits.
  kHigh,
  // Computes as kHigh does; in addition some steps reuse the results of an earlier step's blocks.
  kFast,
};

inline constexpr std::array<Quality, 3> kQualities = {Quality::kExact, Quality::kHigh,
                                                      Quality::kFast};

constexpr std::string_view NameOf(Quality quality) {
  switch (quality) {
    case Quality::kExact:
      return "exact";
    case Quality::kHigh:
      return "high";
    case Quality::kFast:
      return "fast";
  }
  return "";
}

// Returns nullopt for any other text.
constexpr std::optional<Quality> ParseQuality(std::string_view text) {
  for (const Quality quality : kQualities) {
    if (NameOf(quality) == text) return quality;
  }
  return std::nullopt;
}

// Whether jobs of this quality compute with inputs of 8 bits.
constexpr bool RoundsToEightBits(Quality quality) { return quality != Quality::kExact; }

}  // namespace wan
