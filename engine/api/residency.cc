#include "engine/api/residency.h"

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

}  // namespace wan
