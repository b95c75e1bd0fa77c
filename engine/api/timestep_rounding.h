// How the engine rounds the timesteps of a schedule before the model gets them. Distilled models
// were trained with the rounding of their authors' programs. The solver always computes with the
// exact noise levels.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace wan {

enum class TimestepRounding {
  kNone,
  kWhole,     // to the nearest whole number
  kBFloat16,  // to the nearest number in bf16
};

inline constexpr std::array kTimestepRoundings = {
    std::pair{TimestepRounding::kNone, std::string_view("none")},
    std::pair{TimestepRounding::kWhole, std::string_view("whole")},
    std::pair{TimestepRounding::kBFloat16, std::string_view("bf16")},
};

// Returns "none", "whole" or "bf16".
constexpr std::string_view NameOf(TimestepRounding rounding) {
  for (const auto& [value, name] : kTimestepRoundings) {
    if (value == rounding) return name;
  }
  return "";
}

// Returns the rounding with this name; nullopt for any other text.
constexpr std::optional<TimestepRounding> ParseTimestepRounding(std::string_view text) {
  for (const auto& [value, name] : kTimestepRoundings) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace wan
