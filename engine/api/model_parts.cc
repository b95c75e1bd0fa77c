#include "engine/api/model_parts.h"

#include <array>
#include <cstddef>
#include <utility>

namespace wan {
namespace {

template <typename Value>
using Name = std::pair<Value, std::string_view>;

constexpr std::array kFamilies{
#define WAN_MODEL_FAMILY(id, name) Name<FamilyId>{FamilyId::id, name},
#include "engine/api/model_families.def"
#undef WAN_MODEL_FAMILY
};
constexpr std::array kComponents{
    Name<ModelComponent>{ModelComponent::kTextEncoder, "text_encoder"},
    Name<ModelComponent>{ModelComponent::kTransformer, "transformer"},
    Name<ModelComponent>{ModelComponent::kTransformer2, "transformer_2"},
    Name<ModelComponent>{ModelComponent::kVae, "vae"},
};
constexpr std::array kExperts{
    Name<ExpertRole>{ExpertRole::kOnly, "only"},
    Name<ExpertRole>{ExpertRole::kHighNoise, "high"},
    Name<ExpertRole>{ExpertRole::kLowNoise, "low"},
};

template <typename Value, size_t count>
std::string_view Find(const std::array<Name<Value>, count>& names, Value value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "";
}

template <typename Value, size_t count>
std::optional<Value> Parse(const std::array<Name<Value>, count>& names, std::string_view text) {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(FamilyId family) { return Find(kFamilies, family); }
std::optional<FamilyId> ParseFamily(std::string_view name) { return Parse(kFamilies, name); }

std::string_view NameOf(ModelComponent component) { return Find(kComponents, component); }
std::optional<ModelComponent> ParseComponent(std::string_view name) {
  return Parse(kComponents, name);
}
ModelComponent TransformerComponent(int index) {
  return index == 0 ? ModelComponent::kTransformer : ModelComponent::kTransformer2;
}

std::string_view NameOf(ExpertRole expert) { return Find(kExperts, expert); }
std::optional<ExpertRole> ParseExpert(std::string_view name) { return Parse(kExperts, name); }

}  // namespace wan
