// Implements config_reader.h for diffusers' layout.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/json_config.h"
#include "engine/checkpoint/upstream_constants.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

using Problems = std::vector<absl::Status>;

// Reads the file, and lets `read` fill in the config from the file's fields.
template <typename Config, typename ReadFields>
std::optional<Config> ReadConfig(const std::string& path, Problems& problems, ReadFields read) {
  return ReadJsonConfig<Config>(path, problems, [&](JsonFields& fields) {
    Config config;
    read(fields, config);
    AddContradictions(config, fields);
    return std::optional(config);
  });
}

void CheckClass(JsonFields& fields, std::string_view expected) {
  const std::string name = fields.Text("_class_name");
  if (name.empty() || name == expected) return;
  fields.Refuse(
      absl::StrCat("the component is a ", Printable(name), ", expected ", std::string(expected)));
}

// Checks a field that may be absent, and for which the engine supports only one value.
void CheckNumber(JsonFields& fields, std::string_view key, double expected) {
  if (!fields.Has(key)) return;
  const double found = fields.Number(key);
  if (found == expected) return;
  fields.Refuse(absl::StrCat("\"", std::string(key), "\" is ", found, ", expected ", expected));
}

}  // namespace

std::optional<TransformerConfig> ReadDiffusersTransformer(const std::string& config_path,
                                                          Problems& problems) {
  return ReadConfig<TransformerConfig>(
      config_path, problems, [](JsonFields& fields, TransformerConfig& config) {
        CheckClass(fields, "WanTransformer3DModel");
        config.num_heads = fields.Integer("num_attention_heads", 1, kMaxWidth);
        config.dim = config.num_heads * fields.Integer("attention_head_dim", 1, kMaxWidth);
        config.ffn_dim = fields.Integer("ffn_dim", 1, kMaxWidth);
        config.freq_dim = fields.Integer("freq_dim", 1, kMaxWidth);
        config.num_layers = fields.Integer("num_layers", 1, kMaxLayers);
        config.in_channels = fields.Integer("in_channels", 1, kMaxWidth);
        config.out_channels = fields.Integer("out_channels", 1, kMaxWidth);
        config.text_dim = fields.Integer("text_dim", 1, kMaxWidth);
        config.text_len = kTextLength;
        config.eps = fields.Number("eps");
        config.cross_attn_norm = fields.Bool("cross_attn_norm");
        const std::vector<int64_t> patch = fields.Integers("patch_size", 1, kMaxPatch);
        if (patch.size() == config.patch_size.size()) {
          std::copy(patch.begin(), patch.end(), config.patch_size.begin());
        } else {
          fields.AddProblem(absl::StrCat("\"patch_size\" has ", patch.size(),
                                         " entries, expected frames, rows, columns"));
        }
        config.qk_norm = fields.Has("qk_norm");
        if (config.qk_norm) {
          if (const std::string norm = fields.Text("qk_norm"); norm != "rms_norm_across_heads") {
            fields.Refuse(absl::StrCat("\"qk_norm\" is ", Printable(norm),
                                       ", expected rms_norm_across_heads"));
          }
        }
        // Refuse the fields of the image branch of Wan2.1's image-to-video models.
        for (const std::string_view key : {"image_dim", "added_kv_proj_dim"}) {
          if (fields.Has(key)) {
            fields.Refuse(
                absl::StrCat("\"", std::string(key),
                             "\" is set, as only Wan2.1's image-to-video models have it"));
          }
        }
      });
}

std::optional<TextEncoderConfig> ReadDiffusersTextEncoder(const std::string& config_path,
                                                          Problems& problems) {
  return ReadConfig<TextEncoderConfig>(
      config_path, problems, [](JsonFields& fields, TextEncoderConfig& config) {
        if (const std::string type = fields.Text("model_type"); !type.empty() && type != "umt5") {
          fields.Refuse(
              absl::StrCat("the text encoder is of type ", Printable(type), ", expected umt5"));
        }
        config.dim = fields.Integer("d_model", 1, kMaxWidth);
        config.ffn_dim = fields.Integer("d_ff", 1, kMaxWidth);
        config.num_heads = fields.Integer("num_heads", 1, kMaxWidth);
        config.head_dim = fields.Integer("d_kv", 1, kMaxWidth);
        config.num_layers = fields.Integer("num_layers", 1, kMaxLayers);
        config.num_buckets = fields.Integer("relative_attention_num_buckets", 1, kMaxWidth);
        config.vocab_size = fields.Integer("vocab_size", 1, kMaxVocabulary);
        CheckNumber(fields, "relative_attention_max_distance", 128);
        CheckNumber(fields, "layer_norm_epsilon", 1e-6);
        if (const std::string ffn = fields.Text("feed_forward_proj");
            !ffn.empty() && ffn != "gated-gelu") {
          fields.Refuse(
              absl::StrCat("\"feed_forward_proj\" is ", Printable(ffn), ", expected gated-gelu"));
        }
      });
}

std::optional<VaeConfig> ReadDiffusersVae(const std::string& config_path, Problems& problems) {
  return ReadConfig<VaeConfig>(config_path, problems, [](JsonFields& fields, VaeConfig& config) {
    CheckClass(fields, "AutoencoderKLWan");
    // The published config of the 2.1 VAE was written before these fields existed.
    const bool is_residual = fields.Has("is_residual") && fields.Bool("is_residual");
    config.kind = is_residual ? VaeKind::kWan22 : VaeKind::kWan21;
    config.z_dim = fields.Integer("z_dim", 1, kMaxWidth);
    config.base_dim = fields.Integer("base_dim", 1, kMaxWidth);
    config.decoder_base_dim = fields.Has("decoder_base_dim")
                                  ? fields.Integer("decoder_base_dim", 1, kMaxWidth)
                                  : config.base_dim;
    config.dim_mult = fields.Integers("dim_mult", 1, kMaxMultiplier);
    config.num_res_blocks = static_cast<int>(fields.Integer("num_res_blocks", 1, kMaxResBlocks));
    config.temporal_downsample = fields.Bools("temperal_downsample");
    config.patch_size = fields.Has("patch_size") ? fields.Integer("patch_size", 1, kMaxPatch) : 1;
    config.latents_mean = fields.Numbers("latents_mean");
    config.latents_std = fields.Numbers("latents_std");
    const auto stages = static_cast<int64_t>(config.dim_mult.size());
    if (stages < 1 || stages > kMaxStages) {
      fields.AddProblem(
          absl::StrCat("\"dim_mult\" has ", stages, " entries, expected 1 to ", kMaxStages));
      return;
    }
    SetStrides(config);
    const auto pixels = static_cast<double>(3 * config.patch_size * config.patch_size);
    CheckNumber(fields, "in_channels", pixels);
    CheckNumber(fields, "out_channels", pixels);
    CheckNumber(fields, "scale_factor_spatial", static_cast<double>(config.stride_spatial));
    CheckNumber(fields, "scale_factor_temporal", static_cast<double>(config.stride_temporal));
    if (fields.Has("attn_scales") && !fields.Numbers("attn_scales").empty()) {
      fields.Refuse("\"attn_scales\" is not empty");
    }
  });
}

}  // namespace wan
