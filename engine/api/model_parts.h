// The model families, components and experts. Each of these types has one name per value, which is
// used on the wire, in settings, in file layouts and in metric labels. Code compares these types;
// names are only for input and output. All functions are pure, and any thread may call them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace wan {

// A family is an architecture, not a size: a tiny model has the family of the large model that it
// resembles.
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

// Returns the family's name in model_families.def, for example "ti2v-5b".
std::string_view NameOf(FamilyId family);
// Returns the family with this name; nullopt for any other text.
std::optional<FamilyId> ParseFamily(std::string_view name);

// Checkpoints with two experts have the expert for high noise in kTransformer and the expert for
// low noise in kTransformer2.
enum class ModelComponent { kTextEncoder, kTransformer, kTransformer2, kVae };

inline constexpr std::array kModelComponents = {
    ModelComponent::kTextEncoder, ModelComponent::kTransformer, ModelComponent::kTransformer2,
    ModelComponent::kVae};

// Returns "text_encoder", "transformer", "transformer_2" or "vae".
std::string_view NameOf(ModelComponent component);
// Returns the component with this name; nullopt for any other text.
std::optional<ModelComponent> ParseComponent(std::string_view name);
// Returns the component of the expert with the given index (0 or 1) in the checkpoint's order.
ModelComponent TransformerComponent(int index);

// The role of an expert: a model's only expert, or its expert for high or for low noise.
enum class ExpertRole { kOnly, kHighNoise, kLowNoise };

// Returns "only", "high" or "low".
std::string_view NameOf(ExpertRole expert);
// Returns the expert with this name; nullopt for any other text.
std::optional<ExpertRole> ParseExpert(std::string_view name);

}  // namespace wan
