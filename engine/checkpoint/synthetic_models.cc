#include "engine/checkpoint/synthetic_models.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/upstream_constants.h"
#include "engine/formats/file_errors.h"

namespace wan {
namespace {

VaeConfig Vae(VaeKind kind, int64_t z_dim, int64_t base_dim, int64_t decoder_base_dim) {
  VaeConfig config = UpstreamVae(kind);
  config.z_dim = z_dim;
  config.base_dim = base_dim;
  config.decoder_base_dim = decoder_base_dim;
  SetStrides(config);
  return config;
}

// What does not depend on size: patches, sinusoid, text.
TransformerConfig Transformer(std::string_view type, int64_t in_channels, int64_t out_channels) {
  return {.freq_dim = 256,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .text_len = kTextLength,
          .patch_size = {1, 2, 2},
          .eps = 1e-6,
          .model_type = std::string(type)};
}

// One of upstream's: UMT5-XXL and bf16 are common to them.
SyntheticModel Published(FamilyId family, TransformerConfig transformer, VaeConfig vae) {
  SyntheticModel model{.name = std::string(NameOf(family)),
                       .family = family,
                       .transformer = std::move(transformer),
                       .text_encoder = {.dim = 4096,
                                        .ffn_dim = 10240,
                                        .num_heads = 64,
                                        .head_dim = 64,
                                        .num_layers = 24,
                                        .num_buckets = 32,
                                        .vocab_size = 256384},
                       .vae = std::move(vae),
                       .transformer_dtype = DType::kBFloat16,
                       .text_encoder_dtype = DType::kBFloat16,
                       .vae_dtype = DType::kFloat32};
  model.transformer.text_dim = model.text_encoder.dim;
  return model;
}

SyntheticModel Ti2v5b() {
  TransformerConfig transformer = Transformer("ti2v", 48, 48);
  transformer.dim = 3072;
  transformer.ffn_dim = 14336;
  transformer.num_heads = 24;
  transformer.num_layers = 30;
  return Published(FamilyId::kTi2v5b, transformer, Vae(VaeKind::kWan22, 48, 160, 256));
}

SyntheticModel A14b(FamilyId family, int64_t in_channels) {
  const std::string_view type = family == FamilyId::kT2vA14b ? "t2v" : "i2v";
  TransformerConfig transformer = Transformer(type, in_channels, 16);
  transformer.dim = 5120;
  transformer.ffn_dim = 13824;
  transformer.num_heads = 40;
  transformer.num_layers = 40;
  return Published(family, transformer, Vae(VaeKind::kWan21, 16, 96, 96));
}

SyntheticModel Ti2vTiny() {
  SyntheticModel tiny{.name = "ti2v-tiny",
                      .family = FamilyId::kTi2v5b,
                      .transformer = Transformer("ti2v", 48, 48),
                      .text_encoder = {.dim = 64,
                                       .ffn_dim = 128,
                                       .num_heads = 4,
                                       .head_dim = 16,
                                       .num_layers = 2,
                                       .num_buckets = 32,
                                       .vocab_size = 960},
                      .vae = Vae(VaeKind::kWan22, 48, 8, 12)};
  tiny.transformer.dim = 64;
  tiny.transformer.ffn_dim = 160;
  tiny.transformer.num_heads = 2;
  tiny.transformer.num_layers = 3;
  tiny.transformer.text_dim = tiny.text_encoder.dim;
  return tiny;
}

std::vector<SyntheticModel> SyntheticModels() {
  constexpr int64_t kLatents = 16;
  constexpr int64_t kMask = 4;  // one channel per frame of a latent
  return {Ti2v5b(), A14b(FamilyId::kT2vA14b, kLatents),
          A14b(FamilyId::kI2vA14b, 2 * kLatents + kMask), Ti2vTiny()};
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
