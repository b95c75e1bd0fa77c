#include "engine/costs/wan/shared_tokens_cost.h"

#include <algorithm>
#include <vector>

#include "engine/costs/memory_walk.h"
#include "engine/costs/wan/transformer_cost.h"

namespace wan {

int64_t ExchangePieces(int64_t tokens, int64_t fewest_overlapped) {
  return tokens < fewest_overlapped ? 1 : 3;
}

Share PieceOfHeads(const Share& heads, int64_t piece, int64_t pieces) {
  if (pieces == 1) return heads;
  const int64_t ends[] = {0, (heads.count + 3) / 4, heads.count - heads.count / 4, heads.count};
  return {heads.first + ends[piece], ends[piece + 1] - ends[piece]};
}

// The function walks over one forward pass in order. NOLINTNEXTLINE(readability-function-size)
uint64_t SharedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                            int64_t ranks, int64_t element_bytes, int64_t fewest_overlapped) {
  ranks = std::min(ranks, tokens);
  if (ranks <= 1) return ForwardBytes(config, tokens, batch, element_bytes);
  constexpr int64_t kFp32 = 4;
  const int64_t head_dim = config.dim / config.num_heads;
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  const int64_t all = batch * tokens;
  // Counts the first rank, because it has the most tokens and heads.
  const int64_t own = batch * ((tokens + ranks - 1) / ranks);
  const int64_t modulation = 2 * 6 * config.dim * kFp32;

  MemoryWalk walk;
  const auto rotary = walk.Take(tokens * head_dim * kFp32);
  const auto index = walk.Take(all * 4);
  const auto own_index = walk.Take(own * 4);
  const auto sinusoids = walk.Take(2 * config.freq_dim * kFp32);
  const auto time = walk.Take(2 * config.dim * kFp32);
  const auto latents = walk.Take(all * config.in_channels * patch * kFp32);  // this rank's copy of
                                                                             // the latents
  auto patches = walk.Take(all * config.in_channels * patch * kFp32);
  auto own_patches = walk.Take(own * config.in_channels * patch * kFp32);
  const auto residual = walk.Take(own * config.dim * kFp32);
  own_patches.Free();
  patches.Free();
  const auto narrow = walk.Take(own * config.dim * element_bytes);
  const auto wide = walk.Take(std::max(
      own * std::max(3 * config.dim, config.ffn_dim) * element_bytes, own * config.dim * kFp32));
  {
    const auto own_rotary = walk.Take((tokens + ranks - 1) / ranks * head_dim * kFp32);
    const auto time_modulation = walk.Take(modulation);
    const auto table = walk.Take(2 * modulation);
    const auto results = walk.Take(own * config.dim * element_bytes);
    const int64_t pieces = ExchangePieces(tokens, fewest_overlapped);
    const int64_t head_bytes = head_dim * element_bytes;
    const std::vector<Share> heads = SharesOf(config.num_heads, static_cast<int>(ranks));
    struct Piece {
      int64_t own = 0;     // number of this rank's heads
      int64_t others = 0;  // number of heads that other ranks compute
      MemoryWalk::Block packed, sent, mixed, sorted, received;
    };
    std::vector<Piece> walked(static_cast<size_t>(pieces));
    for (int64_t i = 0; i < pieces; ++i) {
      for (size_t rank = 0; rank < heads.size(); ++rank) {
        Piece& piece = walked[static_cast<size_t>(i)];
        (rank == 0 ? piece.own : piece.others) += PieceOfHeads(heads[rank], i, pieces).count;
      }
    }
    const auto send = [&](Piece& piece) {
      piece.packed = walk.Take(all * 3 * piece.own * head_bytes);
      piece.sent = walk.Take(own * 3 * piece.others * head_bytes);
    };
    send(walked.front());
    for (size_t i = 0; i < walked.size(); ++i) {
      Piece& piece = walked[i];
      if (i + 1 < walked.size()) send(walked[i + 1]);
      piece.sent.Free();
      piece.mixed = walk.Take(all * piece.own * head_bytes);
      const int64_t queries = QueriesAtATime(config, tokens);
      if (queries < tokens) walk.Touch(queries * piece.own * head_bytes);
      piece.packed.Free();
      // The results of a batch are reordered before they are sent.
      if (batch > 1) piece.sorted = walk.Take(all * piece.own * head_bytes);
      piece.received = walk.Take(own * piece.others * head_bytes);
      if (i > 0) walked[i - 1] = Piece();
    }
  }
  const int64_t head_bytes = patch * config.out_channels * kFp32;
  const auto head = walk.Take(own * head_bytes);
  const auto sent = walk.Take(own * head_bytes);
  const auto gathered = walk.Take(all * head_bytes);
  // The gathered rows are sorted first, then rearranged as a video.
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
  // In a step without guidance all ranks share one forward.
  const uint64_t single = shared(1, ranks);
  const uint64_t guided = ranks % 2 == 0 ? shared(1, ranks / 2) : shared(batch, ranks);
  return std::max(single, guided);
}

}  // namespace wan
