#include "engine/checkpoint/synthetic_models.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/file_errors.h"
#include "engine/checkpoint/upstream_constants.h"

namespace wan {
namespace {

VaeConfig Vae22(int64_t z_dim, int64_t base_dim, int64_t decoder_base_dim) {
  VaeConfig config = UpstreamVae("2.2");
  config.z_dim = z_dim;
  config.base_dim = base_dim;
  config.decoder_base_dim = decoder_base_dim;
  SetStrides(config);
  return config;
}

std::vector<SyntheticModel> SyntheticModels() {
  const TransformerConfig common{.freq_dim = 256,
                                 .in_channels = 48,
                                 .out_channels = 48,
                                 .text_len = kTextLength,
                                 .patch_size = {1, 2, 2},
                                 .eps = 1e-6,
                                 .model_type = "ti2v"};
  SyntheticModel full{.name = "ti2v-5b",
                      .model = "ti2v-5b",
                      .transformer = common,
                      .text_encoder = {.dim = 4096,
                                       .ffn_dim = 10240,
                                       .num_heads = 64,
                                       .head_dim = 64,
                                       .num_layers = 24,
                                       .num_buckets = 32,
                                       .vocab_size = 256384},
                      .vae = Vae22(48, 160, 256),
                      .transformer_dtype = DType::kBFloat16,
                      .text_encoder_dtype = DType::kBFloat16,
                      .vae_dtype = DType::kFloat32};
  full.transformer.dim = 3072;
  full.transformer.ffn_dim = 14336;
  full.transformer.num_heads = 24;
  full.transformer.num_layers = 30;
  full.transformer.text_dim = full.text_encoder.dim;

  SyntheticModel tiny{.name = "ti2v-tiny",
                      .model = "ti2v-5b",
                      .transformer = common,
                      .text_encoder = {.dim = 64,
                                       .ffn_dim = 128,
                                       .num_heads = 4,
                                       .head_dim = 16,
                                       .num_layers = 2,
                                       .num_buckets = 32,
                                       .vocab_size = 960},
                      .vae = Vae22(48, 8, 12)};
  tiny.transformer.dim = 64;
  tiny.transformer.ffn_dim = 160;
  tiny.transformer.num_heads = 2;
  tiny.transformer.num_layers = 3;
  tiny.transformer.text_dim = tiny.text_encoder.dim;
  return {full, tiny};
}

}  // namespace

absl::StatusOr<SyntheticModel> FindSyntheticModel(std::string_view name) {
  std::vector<std::string> names;
  for (SyntheticModel& model : SyntheticModels()) {
    if (model.name == name) return std::move(model);
    names.push_back(model.name);
  }
  return absl::NotFoundError(absl::StrCat("synthetic:", Printable(name),
                                          ": no such synthetic model; there are ",
                                          absl::StrJoin(names, ", ")));
}

}  // namespace wan
