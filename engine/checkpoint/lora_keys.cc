#include "engine/checkpoint/lora_keys.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/checkpoint/expected_tensors.h"

namespace wan {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";

// Prefixes that diffusers, PEFT, ComfyUI, DiffSynth and trainers' wrappers write before a module
// name with dots. A key may have several of them, in any order.
constexpr std::array<std::string_view, 6> kPrefixes = {
    "base_model.model.", "diffusion_model.", "transformer.", "pipe.dit.", "model.", "module."};

// After one of these prefixes, Kohya and LyCORIS write underscores in place of dots. Longer
// prefixes come first in the list.
constexpr std::array<std::string_view, 3> kFlatPrefixes = {"lora_unet__", "lora_unet_", "lycoris_"};

struct Ending {
  std::string_view text;
  LoraPart part;
};

// A key may continue with one of these suffixes after the ending of its part.
constexpr std::array<std::string_view, 3> kTails = {".default.weight", ".weight", ".default"};

constexpr std::array<Ending, 30> kEndings = {{
    {".lora_A", LoraPart::kDown},
    {".lora_down", LoraPart::kDown},
    {".lora.down", LoraPart::kDown},
    {"_lora.down", LoraPart::kDown},
    {".lora_linear_layer.down", LoraPart::kDown},
    {".lora_B", LoraPart::kUp},
    {".lora_up", LoraPart::kUp},
    {".lora.up", LoraPart::kUp},
    {"_lora.up", LoraPart::kUp},
    {".lora_linear_layer.up", LoraPart::kUp},
    {".lora_B.bias", LoraPart::kUpBias},
    {".lora_B.default.bias", LoraPart::kUpBias},
    {".alpha", LoraPart::kAlpha},
    {".diff", LoraPart::kDifference},
    {".diff_b", LoraPart::kBiasDifference},
    // The key reads like the block itself, but the tensor changes the block's modulation.
    {".diff_m", LoraPart::kDifference},
    // The endings of LyCORIS's differences of norms.
    {".w_norm", LoraPart::kDifference},
    {".b_norm", LoraPart::kBiasDifference},
    {".dora_scale", LoraPart::kMagnitude},
    {".lora_magnitude_vector", LoraPart::kMagnitude},
    {".hada_w1_a", LoraPart::kFirstUp},
    {".hada_w1_b", LoraPart::kFirstDown},
    {".hada_w2_a", LoraPart::kSecondUp},
    {".hada_w2_b", LoraPart::kSecondDown},
    {".lokr_w1", LoraPart::kLeft},
    {".lokr_w1_a", LoraPart::kLeftUp},
    {".lokr_w1_b", LoraPart::kLeftDown},
    {".lokr_w2", LoraPart::kRight},
    {".lokr_w2_a", LoraPart::kRightUp},
    {".lokr_w2_b", LoraPart::kRightDown},
}};
constexpr std::string_view kModulationEnding = ".diff_m";

struct Foreign {
  std::string_view text;
  std::string_view what;
};

// Kinds of adapters that are not supported, and the text in a key by which each is recognised.
constexpr std::array<Foreign, 6> kForeign = {{
    {".hada_t", "the core of a LoHa for convolutions"},
    {".lokr_t", "the core of a LoKr for convolutions"},
    {".lora_mid", "the core of a LoCon for convolutions"},
    {".oft_", "a part of an OFT"},
    {".set_weight", "a weight to replace another"},
    {".reshape_weight", "a new shape of a weight"},
}};

// The modules of the image branch under upstream's and diffusers' names with underscores: first
// those in every block, then those outside the blocks.
constexpr std::array<std::string_view, 6> kImageBranchOfBlock = {
    "cross_attn_k_img", "cross_attn_v_img", "cross_attn_norm_k_img",
    "attn2_add_k_proj", "attn2_add_v_proj", "attn2_norm_added_k"};
constexpr std::array<std::string_view, 10> kImageBranch = {
    "img_emb_proj_0",
    "img_emb_proj_1",
    "img_emb_proj_3",
    "img_emb_proj_4",
    "img_emb_emb_pos",
    "condition_embedder_image_embedder_norm1",
    "condition_embedder_image_embedder_ff_net_0_proj",
    "condition_embedder_image_embedder_ff_net_2",
    "condition_embedder_image_embedder_norm2",
    "condition_embedder_image_embedder_pos_embed"};

std::string Flat(std::string_view name) {
  return absl::StrReplaceAll(absl::string_view(name.data(), name.size()), {{".", "_"}});
}

// Splits a name such as "blocks_7_REST" into the block's number and the rest.
struct BlockPart {
  int64_t block = 0;
  std::string_view rest;
};

std::optional<BlockPart> InBlock(std::string_view flat) {
  constexpr std::string_view kBlocks = "blocks_";
  if (!flat.starts_with(kBlocks)) return std::nullopt;
  flat.remove_prefix(kBlocks.size());
  const size_t end = flat.find('_');
  BlockPart part;
  if (!absl::SimpleAtoi(absl::string_view(flat.data(), std::min(end, flat.size())), &part.block)) {
    return std::nullopt;
  }
  part.rest = end == std::string_view::npos ? "" : flat.substr(end + 1);
  return part;
}

template <size_t kSize>
bool Contains(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<std::string_view> Without(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

std::string_view WithoutPrefixes(std::string_view module) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (const std::string_view prefix : kPrefixes) {
      if (const auto rest = Without(module, prefix)) {
        module = *rest;
        changed = true;
      }
    }
  }
  return module;
}

// A key, split into the module's name and the ending. If the ending is not known, the module's name
// is the whole key.
struct SplitKey {
  std::string_view module;
  const Ending* ending = nullptr;
};

SplitKey Split(std::string_view key) {
  std::string_view text = key;
  for (const std::string_view tail : kTails) {
    if (!text.ends_with(tail)) continue;
    text.remove_suffix(tail.size());
    break;
  }
  for (const Ending& ending : kEndings) {
    if (!text.ends_with(ending.text)) continue;
    return {text.substr(0, text.size() - ending.text.size()), &ending};
  }
  return {key, nullptr};
}

}  // namespace

LoraKeyReader::LoraKeyReader(const TransformerConfig& config) : num_layers_(config.num_layers) {
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    shapes_.emplace(spec.name, spec.shape);
    size_t ending = 0;
    if (spec.name.ends_with(kWeight)) ending = kWeight.size();
    if (spec.name.ends_with(kBias)) ending = kBias.size();
    const auto module_of = [&](const std::string& name) {
      return name.substr(0, name.size() - ending);
    };
    AddSpelling(module_of(spec.name), module_of(spec.name));
    AddSpelling(module_of(spec.diffusers_name), module_of(spec.name));
  }
}

void LoraKeyReader::AddSpelling(std::string_view spelling, const std::string& module) {
  modules_.emplace(Flat(spelling), module);
}

bool LoraKeyReader::IsImageBranch(std::string_view flat) const {
  if (Contains(kImageBranch, flat)) return true;
  const std::optional<BlockPart> part = InBlock(flat);
  return part.has_value() && part->block < num_layers_ && Contains(kImageBranchOfBlock, part->rest);
}

absl::StatusOr<LoraKey> LoraKeyReader::Read(std::string_view key) const {
  const SplitKey split = Split(key);
  const Ending* const ending = split.ending;
  if (ending == nullptr) {
    for (const Foreign& foreign : kForeign) {
      if (key.find(foreign.text) == std::string_view::npos) continue;
      return absl::UnimplementedError(
          absl::StrCat("is ", std::string(foreign.what),
                       "; must be a part of a LoRA, DoRA, LoHa or LoKr without a core"));
    }
    return absl::InvalidArgumentError(
        "has none of the endings that parts of a LoRA have, such as .lora_A.weight, "
        ".lora_down.weight or .diff_b");
  }
  std::string_view module = split.module;
  const auto* const prefix = std::find_if(kFlatPrefixes.begin(), kFlatPrefixes.end(),
                                          [&](auto text) { return module.starts_with(text); });
  module = prefix == kFlatPrefixes.end() ? WithoutPrefixes(module) : module.substr(prefix->size());
  std::string flat = Flat(module);
  if (IsImageBranch(flat)) return LoraKey{"", LoraPart::kImageBranch};
  if (ending->text == kModulationEnding) flat += "_modulation";
  const auto found = modules_.find(flat);
  if (found == modules_.end()) return NoPart(module);
  return LoraKey{found->second, ending->part};
}

std::string_view LoraKeyReader::SpelledModule(std::string_view key) { return Split(key).module; }

absl::Status LoraKeyReader::NoPart(std::string_view module) const {
  if (module.starts_with("transformer_2.")) {
    return absl::InvalidArgumentError(
        "belongs to a second transformer; give each expert's LoRA as a file of its own");
  }
  if (module.starts_with("text_encoder") || module.starts_with("lora_te")) {
    return absl::InvalidArgumentError(
        "belongs to a text encoder; a LoRA can change only transformers");
  }
  const std::string flat = Flat(module);
  const std::optional<BlockPart> part = InBlock(flat);
  if (part.has_value() && part->block >= num_layers_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "belongs to another model: the last block of this model is ", num_layers_ - 1));
  }
  return absl::InvalidArgumentError("is not a part of this model");
}

std::string LoraKeyReader::TargetOf(const LoraKey& key) const {
  const bool is_bias = key.part == LoraPart::kUpBias || key.part == LoraPart::kBiasDifference;
  std::string tensor = absl::StrCat(key.module, std::string(is_bias ? kBias : kWeight));
  if (shapes_.contains(tensor)) return tensor;
  return !is_bias && shapes_.contains(key.module) ? key.module : "";
}

const std::vector<int64_t>& LoraKeyReader::ShapeOf(const std::string& tensor) const {
  return shapes_.at(tensor);
}

}  // namespace wan
