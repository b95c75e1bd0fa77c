// The transformer's weights in the form in which Forward() uses them. Only this file decides which
// weights have the model's dtype and which are fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/ops/rounding.h"
#include "engine/weights/weight_loader.h"

namespace wan {

struct LinearWeights {
  at::Tensor weight;         // [out, in]; undefined if the weight has 8 bits
  at::Tensor bias;           // [out]
  RoundedRows rounded = {};  // the weight, if it has 8 bits
};

struct TransformerBlockWeights {
  // fp32 [6, dim]: shift, factor and gate of the self-attention, then of the feed-forward layers.
  // The factor is upstream's scale plus 1.
  at::Tensor modulation;

  LinearWeights qkv;   // shape [3 * dim, dim]: queries, keys, values
  at::Tensor qk_norm;  // fp32, shape [2, dim]
  LinearWeights attention_out;

  at::Tensor cross_norm_scale;  // fp32, shape [1, dim]
  at::Tensor cross_norm_shift;  // fp32, shape [1, dim]
  LinearWeights cross_q;
  at::Tensor cross_q_norm;  // fp32, shape [1, dim]
  LinearWeights cross_kv;   // shape [2 * dim, dim]: keys, values
  at::Tensor cross_k_norm;  // fp32, shape [1, dim]
  LinearWeights cross_out;

  LinearWeights ffn_in;   // shape [ffn_dim, dim]
  LinearWeights ffn_out;  // shape [dim, ffn_dim]
};

struct TransformerWeights {
  LinearWeights patch_embedding;  // fp32, shape [dim, in_channels * patch]
  LinearWeights time_in;          // in fp32
  LinearWeights time_out;         // in fp32
  LinearWeights time_projection;  // fp32, shape [6 * dim, dim]
  LinearWeights text_in;
  LinearWeights text_out;
  std::vector<TransformerBlockWeights> blocks;
  at::Tensor head_modulation;  // fp32, shape [2, dim]: shift, factor
  LinearWeights head;          // fp32, shape [patch * out_channels, dim]

  // Owns the memory of all tensors above. The groups of weights are: the weights outside the
  // blocks; then, for each block, the weights that PrepareText uses (cross_kv, cross_k_norm); then,
  // for each block, its other weights.
  std::shared_ptr<ComponentWeights> memory;
  size_t TextGroup(size_t block) const { return 1 + block; }
  size_t VideoGroup(size_t block) const { return 1 + blocks.size() + block; }
};

// Which matrices a transformer keeps in 8 bits.
struct KeptBits {
  bool eight_bits = false;
  std::vector<int> exact_blocks;  // blocks whose matrices have no 8-bit form, in rising order

  bool Rounds(int64_t block) const {
    return eight_bits && !std::binary_search(exact_blocks.begin(), exact_blocks.end(), block);
  }
};

// Loads the weights. Matrices of the blocks and of the text projection are in the loader's dtype.
// With `kept.eight_bits` the function loads the matrices that a forward's blocks multiply with in 8
// bits (WeightLoader::GetRounded). cross_kv and the text projection keep the dtype, because they
// run only once for a text. Check the loader's status for errors.
TransformerWeights LoadTransformerWeights(WeightLoader& loader, const TransformerConfig& config,
                                          const KeptBits& kept);

}  // namespace wan
