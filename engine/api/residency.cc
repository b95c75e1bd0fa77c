#include "engine/api/residency.h"

#include <algorithm>
#include <array>
#include <utility>

namespace wan {
namespace {

constexpr std::array<std::pair<ResidencyPolicy, std::string_view>, 5> kNames{{
    {ResidencyPolicy::kAuto, "auto"},
    {ResidencyPolicy::kResident, "resident"},
    {ResidencyPolicy::kHost, "host"},
    {ResidencyPolicy::kStream, "stream"},
    {ResidencyPolicy::kCpu, "cpu"},
}};

}  // namespace

std::string_view ResidencyPolicyName(ResidencyPolicy policy) {
  for (const auto& [known, name] : kNames) {
    if (known == policy) return name;
  }
  return "";
}

std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name) {
  for (const auto& [policy, known] : kNames) {
    if (known == name) return policy;
  }
  return std::nullopt;
}

std::optional<ComponentResidency> ParseComponentResidency(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kComponents{"text_encoder", "transformer",
                                                               "transformer_2", "vae"};
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view component = text.substr(0, equals);
  const std::optional<ResidencyPolicy> policy = ParseResidencyPolicy(text.substr(equals + 1));
  if (std::find(kComponents.begin(), kComponents.end(), component) == kComponents.end() ||
      !policy.has_value()) {
    return std::nullopt;
  }
  return ComponentResidency{std::string(component), *policy};
}

}  // namespace wan
