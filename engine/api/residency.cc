#include "engine/api/residency.h"

#include <array>
#include <utility>

namespace wan {
namespace {

constexpr std::array<std::pair<ResidencyPolicy, std::string_view>, 6> kNames{{
    {ResidencyPolicy::kAuto, "auto"},
    {ResidencyPolicy::kResident, "resident"},
    {ResidencyPolicy::kHost, "host"},
    {ResidencyPolicy::kStream, "stream"},
    {ResidencyPolicy::kDisk, "disk"},
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
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::optional<ModelComponent> component = ParseComponent(text.substr(0, equals));
  const std::optional<ResidencyPolicy> policy = ParseResidencyPolicy(text.substr(equals + 1));
  if (!component.has_value() || !policy.has_value()) return std::nullopt;
  return ComponentResidency{*component, *policy};
}

}  // namespace wan
