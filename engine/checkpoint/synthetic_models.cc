#include "engine/checkpoint/synthetic_models.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/upstream_constants.h"
#include "engine/families/model_family.h"
#include "engine/formats/file_errors.h"

namespace wan {
namespace {

VaeConfig Vae(VaeKind kind, int64_t base_dim, int64_t decoder_base_dim) {
  VaeConfig config = UpstreamVae(kind);
  config.z_dim = static_cast<int64_t>(config.latents_mean.size());
  config.base_dim = base_dim;
  config.decoder_base_dim = decoder_base_dim;
  SetStrides(config);
  return config;
}

VaeConfig PublishedVae(VaeKind kind) {
  return kind == VaeKind::kWan22 ? Vae(kind, 160, 256) : Vae(kind, 96, 96);
}

// Makes a config of the given size. Patches, sinusoids and the text length are the same for all
// sizes.
TransformerConfig Transformer(const ModelFamily& family, const PublishedSize& size,
                              const VaeConfig& vae, const TextEncoderConfig& text) {
  return {.dim = size.dim,
          .ffn_dim = size.ffn_dim,
          .freq_dim = 256,
          .num_heads = size.num_heads,
          .num_layers = size.num_layers,
          .in_channels = vae.z_dim + family.ConditionChannels(vae.z_dim, vae.stride_temporal),
          .out_channels = vae.z_dim,
          .text_dim = text.dim,
          .text_len = kTextLength,
          .patch_size = {1, 2, 2},
          .eps = 1e-6,
          .model_type = std::string(family.upstream_type)};
}

// Makes a model that upstream published; all of these have UMT5-XXL and weights in bf16.
SyntheticModel Published(const ModelFamily& family) {
  SyntheticModel model{.name = std::string(NameOf(family.id)),
                       .family = family.id,
                       .text_encoder = {.dim = 4096,
                                        .ffn_dim = 10240,
                                        .num_heads = 64,
                                        .head_dim = 64,
                                        .num_layers = 24,
                                        .num_buckets = 32,
                                        .vocab_size = 256384},
                       .vae = PublishedVae(family.vae),
                       .transformer_dtype = DType::kBFloat16,
                       .text_encoder_dtype = DType::kBFloat16,
                       .vae_dtype = DType::kFloat32};
  model.transformer = Transformer(family, family.published, model.vae, model.text_encoder);
  return model;
}

SyntheticModel Ti2vTiny() {
  const ModelFamily& family = FindModelFamily(FamilyId::kTi2v5b);
  SyntheticModel tiny{.name = "ti2v-tiny",
                      .family = family.id,
                      .text_encoder = {.dim = 64,
                                       .ffn_dim = 128,
                                       .num_heads = 4,
                                       .head_dim = 16,
                                       .num_layers = 2,
                                       .num_buckets = 32,
                                       .vocab_size = 960},
                      .vae = Vae(family.vae, 8, 12)};
  tiny.transformer =
      Transformer(family, {.dim = 64, .ffn_dim = 160, .num_heads = 2, .num_layers = 3}, tiny.vae,
                  tiny.text_encoder);
  return tiny;
}

std::vector<SyntheticModel> SyntheticModels() {
  std::vector<SyntheticModel> models;
  for (const ModelFamily& family : ModelFamilies()) models.push_back(Published(family));
  models.push_back(Ti2vTiny());
  return models;
}

}  // namespace

absl::StatusOr<SyntheticModel> FindSyntheticModel(std::string_view name) {
  std::vector<std::string> names;
  for (SyntheticModel& model : SyntheticModels()) {
    if (model.name == name) return std::move(model);
    names.push_back(model.name);
  }
  return absl::NotFoundError(absl::StrCat("synthetic:", Printable(name),
                                          ": this synthetic model does not exist; the names are ",
                                          absl::StrJoin(names, ", ")));
}

}  // namespace wan
