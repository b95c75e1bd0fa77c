#include "engine/checkpoint/family_choice.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/upstream_constants.h"

namespace wan {
namespace {

// Returns whether the family needs diffusers' "expand_timesteps": only the first frame is clean, so
// each token has a timestep of its own.
bool ExpandsTimesteps(const ModelFamily& family) { return family.image == ImageRole::kFirstFrame; }

int64_t LatentChannels(const ModelFamily& family) {
  return static_cast<int64_t>(UpstreamVae(family.vae).latents_mean.size());
}

const ModelFamily* NearestByWidth(const std::vector<const ModelFamily*>& families, int64_t width) {
  const auto distance = [width](const ModelFamily* family) {
    return std::abs(family->published.dim - width);
  };
  const auto nearest =
      std::min_element(families.begin(), families.end(),
                       [&](const auto* a, const auto* b) { return distance(a) < distance(b); });
  return nearest == families.end() ? nullptr : *nearest;
}

}  // namespace

const ModelFamily* FamilyOfType(std::string_view type, size_t experts,
                                const TransformerConfig& config) {
  std::vector<const ModelFamily*> families;
  for (const ModelFamily& family : ModelFamilies()) {
    if (family.upstream_type == type && family.experts.size() == experts) {
      families.push_back(&family);
    }
  }
  return NearestByWidth(families, config.dim);
}

std::vector<const ModelFamily*> FamiliesOfIndex(size_t experts,
                                                std::optional<bool> expands_timesteps) {
  std::vector<const ModelFamily*> families;
  for (const ModelFamily& family : ModelFamilies()) {
    if (family.experts.size() == experts &&
        expands_timesteps.value_or(ExpandsTimesteps(family)) == ExpandsTimesteps(family)) {
      families.push_back(&family);
    }
  }
  return families;
}

const ModelFamily* FamilyAmong(const std::vector<const ModelFamily*>& families,
                               const std::optional<TransformerConfig>& config) {
  if (families.size() == 1) return families.front();
  if (!config.has_value()) return nullptr;
  const bool conditioned = config->in_channels != config->out_channels;
  std::vector<const ModelFamily*> fitting;
  for (const ModelFamily* const family : families) {
    if ((family->image == ImageRole::kCondition) == conditioned) fitting.push_back(family);
  }
  // Channels that no family has are reported when the components are compared.
  std::vector<const ModelFamily*> of_latents;
  for (const ModelFamily* const family : fitting) {
    if (LatentChannels(*family) == config->out_channels) of_latents.push_back(family);
  }
  return NearestByWidth(of_latents.empty() ? fitting : of_latents, config->dim);
}

std::string AllOf(std::string_view ModelFamily::*word, const char* last) {
  std::vector<std::string> words;
  for (const ModelFamily& family : ModelFamilies()) {
    const std::string next(family.*word);
    if (std::find(words.begin(), words.end(), next) == words.end()) words.push_back(next);
  }
  const std::string final_word = words.back();
  words.pop_back();
  return absl::StrCat(absl::StrJoin(words, ", "), words.empty() ? "" : last, final_word);
}

}  // namespace wan
