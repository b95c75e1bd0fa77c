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
// there is none. If there are several, the transformer's width decides: see FamilyAmong.
const ModelFamily* FamilyOfType(std::string_view type, size_t experts,
                                const TransformerConfig& config);

// Returns the families that fit two entries of diffusers' model_index.json. An entry that is
// nullopt fits all families.
std::vector<const ModelFamily*> FamiliesOfIndex(size_t experts,
                                                std::optional<bool> expands_timesteps);

// Picks one of `families` by the channels of the transformer; if several have the same, picks the
// one whose published transformer has the nearest width. Returns null if several are left and
// `config` is absent, or if no family has such channels.
const ModelFamily* FamilyAmong(const std::vector<const ModelFamily*>& families,
                               const std::optional<TransformerConfig>& config);

// Lists one field of all families without duplicates; if `last` is " and ", as "a, b and c".
std::string AllOf(std::string_view ModelFamily::*word, const char* last);

}  // namespace wan
