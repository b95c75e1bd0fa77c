// The model families, components and experts that exist, and the one name of each: on the wire, in
// settings, in file layouts and as a metric label. Code decides by the types; names are only for
// what comes in and what goes out. All functions are pure and may be called from any thread.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace wan {

// An architecture, not a size: a tiny model has the family of the large one it is like.
enum class FamilyId {
#define WAN_MODEL_FAMILY(id, name) id,
#include "engine/api/model_families.def"
#undef WAN_MODEL_FAMILY
};

inline constexpr std::array kFamilyIds = {
#define WAN_MODEL_FAMILY(id, name) FamilyId::id,
#include "engine/api/model_families.def"
#undef WAN_MODEL_FAMILY
};

// Returns the name of model_families.def, for example "ti2v-5b".
std::string_view NameOf(FamilyId family);
// Nullopt for any other text.
std::optional<FamilyId> ParseFamily(std::string_view name);

// Of two experts kTransformer is the one for high noise and kTransformer2 the one for low noise, as
// checkpoints order them.
enum class ModelComponent { kTextEncoder, kTransformer, kTransformer2, kVae };

inline constexpr std::array kModelComponents = {
    ModelComponent::kTextEncoder, ModelComponent::kTransformer, ModelComponent::kTransformer2,
    ModelComponent::kVae};

// Returns "text_encoder", "transformer", "transformer_2" or "vae".
std::string_view NameOf(ModelComponent component);
// Nullopt for any other text.
std::optional<ModelComponent> ParseComponent(std::string_view name);
// The component of the expert at `index` in the checkpoint's order, 0 or 1.
ModelComponent TransformerComponent(int index);

// Which of a model's experts: the only one, or the one for high or for low noise.
enum class ExpertRole { kOnly, kHighNoise, kLowNoise };

// Returns "only", "high" or "low".
std::string_view NameOf(ExpertRole expert);
// Nullopt for any other text.
std::optional<ExpertRole> ParseExpert(std::string_view name);

}  // namespace wan
