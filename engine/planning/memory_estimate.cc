#include "engine/planning/memory_estimate.h"

#include <algorithm>

#include "engine/planning/memory_walk.h"

namespace wan {
namespace {

constexpr int64_t kFp32 = 4;

}  // namespace

uint64_t TextEncodingBytes(const TextEncoderConfig& config, int64_t tokens, int64_t element_bytes) {
  const int64_t inner = config.num_heads * config.head_dim;
  const int64_t scores = config.num_heads * tokens * tokens;
  MemoryWalk walk;
  const auto buckets = walk.Take(8 * tokens * tokens);
  const auto residual = walk.Take(tokens * config.dim * kFp32);
  const auto states = walk.Take(tokens * config.dim * element_bytes);
  {
    const auto wide = walk.Take(tokens * config.dim * kFp32);
    const auto norm = walk.Take(tokens * config.dim * element_bytes);
    const auto qkv = walk.Take(3 * tokens * inner * element_bytes);
    const auto bias = walk.Take(scores * element_bytes);
    // The attention aligns the rows of its bias.
    const auto aligned = walk.Take(scores * element_bytes);
    const auto mixed = walk.Take(2 * tokens * inner * element_bytes);
    walk.Touch(tokens * config.dim * element_bytes);
  }
  {
    const auto norm = walk.Take(tokens * config.dim * element_bytes);
    const auto halves = walk.Take(2 * tokens * config.ffn_dim * element_bytes);
    const auto gate = walk.Take(tokens * config.ffn_dim * element_bytes);
    walk.Touch(tokens * config.dim * element_bytes);
  }
  return walk.peak();
}

uint64_t TextConditioningBytes(const TransformerConfig& config, int64_t texts,
                               int64_t element_bytes) {
  MemoryWalk walk;
  walk.Touch(texts * config.text_len * 2 * config.dim * element_bytes);
  return static_cast<uint64_t>(config.num_layers) * walk.peak();
}

uint64_t TextPreparationBytes(const TransformerConfig& config, int64_t batch,
                              int64_t element_bytes) {
  const int64_t rows = batch * config.text_len;
  MemoryWalk walk;
  const auto padded = walk.Take(rows * config.text_dim * element_bytes);
  const auto hidden = walk.Take(rows * config.dim * element_bytes);
  const auto states = walk.Take(rows * config.dim * element_bytes);
  return walk.peak();
}

uint64_t ForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                      int64_t element_bytes) {
  const int64_t rows = batch * tokens;
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  const int64_t head_dim = config.dim / config.num_heads;
  // Of the modulation, for the two timesteps that a step has at most.
  const int64_t modulation = 2 * 6 * config.dim * kFp32;

  MemoryWalk walk;
  const auto rotary = walk.Take(tokens * head_dim * kFp32);
  const auto index = walk.Take(rows * 4);
  const auto time = walk.Take(2 * config.dim * kFp32);
  const auto time_modulation = walk.Take(modulation);
  auto patches = walk.Take(rows * config.in_channels * patch * kFp32);
  const auto residual = walk.Take(rows * config.dim * kFp32);
  patches.Free();
  const auto narrow = walk.Take(rows * config.dim * element_bytes);
  const auto wide = walk.Take(std::max(
      rows * std::max(3 * config.dim, config.ffn_dim) * element_bytes, rows * config.dim * kFp32));
  const auto table = walk.Take(2 * modulation);   // a block's and the next one's
  walk.Touch(rows * config.dim * element_bytes);  // what the attention gives
  const auto head = walk.Take(rows * patch * config.out_channels * kFp32);
  walk.Touch(rows * patch * config.out_channels * kFp32);  // the same as a video
  return walk.peak();
}

double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens) {
  const double dim = static_cast<double>(config.dim);
  const double n = static_cast<double>(tokens);
  const double patch =
      static_cast<double>(config.patch_size[0] * config.patch_size[1] * config.patch_size[2]);
  // Self-attention's four products and cross-attention's two, the feed-forward's two, and both
  // attentions.
  const double layer = n * (12 * dim * dim + 4 * dim * static_cast<double>(config.ffn_dim)) +
                       4 * n * n * dim + 4 * n * static_cast<double>(config.text_len) * dim;
  const double ends =
      2 * n * dim * patch * static_cast<double>(config.in_channels + config.out_channels);
  return static_cast<double>(config.num_layers) * layer + ends;
}

}  // namespace wan
