#include "engine/models/wan/shared_tokens_cost.h"

#include <algorithm>

#include "engine/costs/memory_walk.h"
#include "engine/models/wan/transformer_cost.h"

namespace wan {

uint64_t SharedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                            int64_t ranks, int64_t element_bytes) {
  ranks = std::min(ranks, tokens);
  if (ranks <= 1) return ForwardBytes(config, tokens, batch, element_bytes);
  constexpr int64_t kFp32 = 4;
  const int64_t head_dim = config.dim / config.num_heads;
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  const int64_t all = batch * tokens;
  // The first rank has the most of both.
  const int64_t own = batch * ((tokens + ranks - 1) / ranks);
  const int64_t own_heads = (config.num_heads + ranks - 1) / ranks;
  const int64_t modulation = 2 * 6 * config.dim * kFp32;

  MemoryWalk walk;
  const auto rotary = walk.Take(tokens * head_dim * kFp32);
  const auto index = walk.Take(all * 4);
  const auto own_rotary = walk.Take((tokens + ranks - 1) / ranks * head_dim * kFp32);
  const auto own_index = walk.Take(own * 4);
  const auto sinusoids = walk.Take(2 * config.freq_dim * kFp32);
  const auto time = walk.Take(2 * config.dim * kFp32);
  const auto time_modulation = walk.Take(modulation);
  const auto latents = walk.Take(all * config.in_channels * patch * kFp32);  // this rank's copy
  auto patches = walk.Take(all * config.in_channels * patch * kFp32);
  auto own_patches = walk.Take(own * config.in_channels * patch * kFp32);
  const auto residual = walk.Take(own * config.dim * kFp32);
  own_patches.Free();
  patches.Free();
  const auto narrow = walk.Take(own * config.dim * element_bytes);
  const auto wide = walk.Take(std::max(
      own * std::max(3 * config.dim, config.ffn_dim) * element_bytes, own * config.dim * kFp32));
  const auto table = walk.Take(2 * modulation);
  {
    const int64_t mixed_bytes = all * own_heads * head_dim * element_bytes;
    const auto heads = walk.Take(3 * mixed_bytes);  // of all tokens
    {
      // The other ranks' heads of this one's tokens, packed.
      const auto sent = walk.Take(3 * own * config.dim * element_bytes);
    }
    const auto mixed = walk.Take(mixed_bytes);
    const int64_t queries = QueriesAtATime(config, tokens);
    if (queries < tokens) walk.Touch(queries * own_heads * head_dim * element_bytes);
    // A batch is put into another order before it is sent.
    MemoryWalk::Block sorted;
    if (batch > 1) sorted = walk.Take(mixed_bytes);
    const auto received = walk.Take(own * config.dim * element_bytes);
    walk.Touch(own * config.dim * element_bytes);
  }
  const int64_t head_bytes = patch * config.out_channels * kFp32;
  const auto head = walk.Take(own * head_bytes);
  const auto sent = walk.Take(own * head_bytes);
  const auto gathered = walk.Take(all * head_bytes);
  // In the order of the rows, and as a video.
  const auto sorted = walk.Take(all * head_bytes);
  walk.Touch(all * head_bytes);
  return walk.peak();
}

uint64_t GroupForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                           int64_t ranks, int64_t element_bytes) {
  if (ranks <= 1) return ForwardBytes(config, tokens, batch, element_bytes);
  const auto shared = [&](int64_t videos, int64_t among) {
    return SharedForwardBytes(config, tokens, videos, among, element_bytes);
  };
  // A step without guidance is divided among all.
  const uint64_t single = shared(1, ranks);
  const uint64_t guided = ranks % 2 == 0 ? shared(1, ranks / 2) : shared(batch, ranks);
  return std::max(single, guided);
}

}  // namespace wan
