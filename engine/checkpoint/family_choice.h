// Finds the family of a checkpoint. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/families/model_family.h"

namespace wan {

// Returns the family that has this model_type and number of experts in upstream's layout; null if
// no family has them. If several families have them, the transformer's width decides (FamilyAmong).
const ModelFamily* FamilyOfType(std::string_view type, size_t experts,
                                const TransformerConfig& config);

// Returns the families that fit two entries of diffusers' model_index.json. nullopt stands for a
// missing entry, which fits all families.
std::vector<const ModelFamily*> FamiliesOfIndex(size_t experts,
                                                std::optional<bool> expands_timesteps);

// Picks one of `families` by the channels of the transformer. If several families have these
// channels, picks the family whose published transformer has the nearest width. Returns null if no
// family has these channels, or if `config` is absent and several families are left.
const ModelFamily* FamilyAmong(const std::vector<const ModelFamily*>& families,
                               const std::optional<TransformerConfig>& config);

// Lists one field of all families without duplicates, with `last` before the last: " and " gives
// "a, b and c".
std::string AllOf(std::string_view ModelFamily::*word, const char* last);

}  // namespace wan
