// Attention whose scores are products of 8-bit integers; probabilities and values stay as they are.
//
// Softmax does not change if one vector is subtracted from all keys, and scores do not change if
// queries and keys are rotated alike. So before rounding the keys lose their mean, and both are
// multiplied by the Hadamard matrix of the head's size, which spreads a channel's outliers over all
// channels (QuaRot, arXiv 2404.00456; SageAttention 2, arXiv 2411.10958).
//
//   q' = H q,  k' = H (k - mean k)
//   codes = round(127 x' / max |x'|)      the largest value: of a query's row, of a tile of keys
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Keys that share a scale: the tile of the kernel.
inline constexpr int64_t kRoundedKeyTile = 192;

struct RoundedHeads {
  at::Tensor codes;  // int8 [B, n, heads, head_dim], contiguous in the last dimension
  // fp32: of queries [B, heads, n], which include 1 / sqrt(head_dim); of keys [B, heads, tiles].
  at::Tensor scales;

  // Returns those of one batch entry.
  RoundedHeads Video(int64_t entry) const;
  // Returns `count` queries from `first` on.
  RoundedHeads Queries(int64_t first, int64_t count) const;
};

// Whether RoundedAttentionInto saves time for such queries and keys [B, n, heads, head_dim]: on a
// GPU only where it has a kernel (compute capability 9.0, bf16, heads of 128 channels, at least
// 1024 keys). A CPU always rounds, because it is the kernel's reference.
bool RoundsAttention(const at::Tensor& query, const at::Tensor& key);

// Round queries or keys [B, n, heads, head_dim], fp32 or bf16, where they stand: the result's codes
// occupy the first bytes of each head's row, whose values are lost. With a head_dim that is no
// power of two they are not rotated.
RoundedHeads RoundQueries(at::Tensor& query);
RoundedHeads RoundKeys(at::Tensor& key);

// Writes the attention of `query` to `key` and `value` [B, m, heads, head_dim] to `out`, which is
// contiguous and has the query's shape and the value's dtype. Parts of the queries may be computed
// one after the other, as with AttentionInto (attention.h).
void RoundedAttentionInto(const RoundedHeads& query, const RoundedHeads& key,
                          const at::Tensor& value, at::Tensor& out);

// Plain ATen versions. They run on a CPU, and tests compare the kernels with them.
RoundedHeads RoundQueriesReference(at::Tensor& query);
RoundedHeads RoundKeysReference(at::Tensor& key);
void RoundedAttentionReference(const RoundedHeads& query, const RoundedHeads& key,
                               const at::Tensor& value, at::Tensor& out);

}  // namespace wan
