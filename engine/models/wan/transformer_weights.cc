#include "engine/models/wan/transformer_weights.h"

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

LinearWeights GetLinear(WeightLoader& loader, const std::string& name, int64_t out, int64_t in,
                        at::ScalarType dtype) {
  return {loader.Get(name + ".weight", {out, in}, dtype), loader.Get(name + ".bias", {out}, dtype)};
}

// Loads several linear maps that have the same input as one matrix; each weight is [out, in].
LinearWeights GetPacked(WeightLoader& loader, const std::string& prefix,
                        std::initializer_list<const char*> names, int64_t out, int64_t in,
                        bool eight_bits) {
  std::vector<std::string> weights;
  std::vector<std::string> biases;
  for (const char* const name : names) {
    weights.push_back(absl::StrCat(prefix, name, ".weight"));
    biases.push_back(absl::StrCat(prefix, name, ".bias"));
  }
  LinearWeights linear;
  if (eight_bits) {
    linear.rounded = loader.GetRoundedStacked(weights, {out, in});
  } else {
    linear.weight = loader.GetStacked(weights, {out, in}, loader.dtype());
  }
  linear.bias = loader.GetStacked(biases, {out}, loader.dtype());
  return linear;
}

// Loads a table [rows, dim] and adds 1 to the rows listed in `scales`, which turns them into
// factors.
at::Tensor GetModulation(WeightLoader& loader, const std::string& name, int64_t rows, int64_t dim,
                         std::initializer_list<int64_t> scales) {
  at::Tensor table = loader.Get(name, {1, rows, dim}, at::kFloat).squeeze(0);
  for (const int64_t row : scales) loader.Change([=] { table.select(0, row).add_(1); });
  return table;
}

// Loads the weights that compute the text's keys and values. These weights are used only before the
// first step. These weights have a group of their own, so that no step loads them if weights are
// streamed.
void LoadTextPart(WeightLoader& loader, const TransformerConfig& config, const std::string& prefix,
                  TransformerBlockWeights& block) {
  loader.BeginGroup();
  block.cross_kv = GetPacked(loader, prefix, {"cross_attn.k", "cross_attn.v"}, config.dim,
                             config.dim, /*eight_bits=*/false);
  block.cross_k_norm =
      loader.Get(prefix + "cross_attn.norm_k.weight", {config.dim}, at::kFloat).unsqueeze(0);
}

void LoadVideoPart(WeightLoader& loader, const TransformerConfig& config, const std::string& prefix,
                   bool eight_bits, TransformerBlockWeights& block) {
  loader.BeginGroup();
  const int64_t dim = config.dim;
  const auto linear = [&](const char* name, int64_t out, int64_t in) {
    return GetPacked(loader, prefix, {name}, out, in, eight_bits);
  };
  const auto norm = [&](const std::string& name) {
    return loader.Get(prefix + name, {dim}, at::kFloat).unsqueeze(0);
  };
  const std::array<std::string, 2> qk_norms = {prefix + "self_attn.norm_q.weight",
                                               prefix + "self_attn.norm_k.weight"};

  block.modulation = GetModulation(loader, prefix + "modulation", 6, dim, {1, 4});
  block.qkv = GetPacked(loader, prefix, {"self_attn.q", "self_attn.k", "self_attn.v"}, dim, dim,
                        eight_bits);
  block.qk_norm = loader.GetStacked(qk_norms, {dim}, at::kFloat).view({2, dim});
  block.attention_out = linear("self_attn.o", dim, dim);

  block.cross_norm_scale = norm("norm3.weight");
  block.cross_norm_shift = norm("norm3.bias");
  block.cross_q = linear("cross_attn.q", dim, dim);
  block.cross_q_norm = norm("cross_attn.norm_q.weight");
  block.cross_out = linear("cross_attn.o", dim, dim);

  block.ffn_in = linear("ffn.0", config.ffn_dim, dim);
  block.ffn_out = linear("ffn.2", dim, config.ffn_dim);
}

}  // namespace

TransformerWeights LoadTransformerWeights(WeightLoader& loader, const TransformerConfig& config,
                                          const KeptBits& kept) {
  const int64_t dim = config.dim;
  const auto [p, q, r] = config.patch_size;
  TransformerWeights weights;
  weights.patch_embedding = {
      loader.Get("patch_embedding.weight", {dim, config.in_channels, p, q, r}, at::kFloat)
          .flatten(1),
      loader.Get("patch_embedding.bias", {dim}, at::kFloat)};
  weights.time_in = GetLinear(loader, "time_embedding.0", dim, config.freq_dim, at::kFloat);
  weights.time_out = GetLinear(loader, "time_embedding.2", dim, dim, at::kFloat);
  weights.time_projection = GetLinear(loader, "time_projection.1", 6 * dim, dim, at::kFloat);
  weights.text_in = GetLinear(loader, "text_embedding.0", dim, config.text_dim, loader.dtype());
  weights.text_out = GetLinear(loader, "text_embedding.2", dim, dim, loader.dtype());
  weights.head_modulation = GetModulation(loader, "head.modulation", 2, dim, {1});
  weights.head = GetLinear(loader, "head.head", p * q * r * config.out_channels, dim, at::kFloat);

  const auto prefix = [](int64_t block) { return absl::StrCat("blocks.", block, "."); };
  weights.blocks.resize(config.num_layers);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LoadTextPart(loader, config, prefix(i), weights.blocks[i]);
  }
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LoadVideoPart(loader, config, prefix(i), kept.Rounds(i), weights.blocks[i]);
  }
  weights.memory = loader.Finish();
  return weights;
}

}  // namespace wan
