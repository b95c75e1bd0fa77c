// Attention in 8-bit integers: both of its products, of queries with keys and of probabilities with
// values.
//
// Softmax does not change if one vector is subtracted from all keys, and scores do not change if
// queries and keys are rotated alike. So before rounding the keys lose their mean, and both are
// multiplied by the Hadamard matrix of the head's size, which spreads a channel's outliers over all
// channels (QuaRot, arXiv 2404.00456; SageAttention 2, arXiv 2411.10958). Values lose their mean,
// which the result gets back.
//
//   q' = H q,  k' = H (k - mean k)
//   codes = round(127 x' / max |x'|)      max: over a query's row, or over a tile of keys
//   codes = round(127 (v - mean v) / max |v - mean v|) + 128          the largest: of a channel
//   codes = round(255 p / max p)    of a query's probabilities of a tile of keys; the largest is at
//                                   least 2^-24 of the largest of this tile and those after it
//
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Keys that share a scale: the tile of the kernel.
inline constexpr int64_t kRoundedKeyTile = 128;
// The code of a channel's mean value. With it no sum of products is negative.
inline constexpr int64_t kMeanValueCode = 128;
// How far, as a power of two, a tile's largest probability counts at least below the row's. The
// kernel goes from the last tile to the first.
inline constexpr float kRoundedDepth = 24;

struct RoundedHeads {
  at::Tensor codes;  // int8 [B, n, heads, head_dim], contiguous in the last dimension
  // fp32: scales of queries [B, heads, n], which include 1 / sqrt(head_dim); scales of keys [B,
  // heads, tiles].
  at::Tensor scales;

  // Returns the codes and scales of one batch entry.
  RoundedHeads Video(int64_t entry) const;
  // Returns `count` queries from `first` on.
  RoundedHeads Queries(int64_t first, int64_t count) const;
};

// The codes of 16 neighbouring keys stand in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15, in
// which a thread of the kernel has their probabilities. Those of keys beyond the last mean nothing.
struct RoundedValues {
  at::Tensor codes;   // uint8 [B, heads, head_dim, keys], keys a multiple of kRoundedKeyTile
  at::Tensor scales;  // fp32 [B, heads, head_dim]
  // fp32 [B, heads, head_dim]: what the result gets back. With it the codes have the values' mean:
  // their rounding is not always as often up as down, above all that of values in bf16.
  at::Tensor means;

  // Returns those of one batch entry.
  RoundedValues Video(int64_t entry) const;
};

// Whether RoundedAttentionInto saves time for such queries and keys [B, n, heads, head_dim]: on a
// GPU only where it has a kernel (compute capability 9.0, bf16, heads of 128 channels, at least
// 1024 keys). A CPU always rounds, because it is the kernel's reference.
bool RoundsAttention(const at::Tensor& query, const at::Tensor& key);

// Round queries or keys [B, n, heads, head_dim], fp32 or bf16, in place: the codes occupy the first
// bytes of each head's row, whose values are lost. If head_dim is not a power of two, queries and
// keys are not rotated.
RoundedHeads RoundQueries(at::Tensor& query);
RoundedHeads RoundKeys(at::Tensor& key);

// Rounds values [B, n, heads, head_dim], fp32 or bf16, into memory of their own.
RoundedValues RoundValues(const at::Tensor& value);

// Writes the attention of `query` to `key` and `value`, which have the same number of keys, to
// `out` [B, m, heads, head_dim], fp32 or bf16, which is contiguous. Parts of the queries may be
// computed one after the other, as with AttentionInto (attention.h).
void RoundedAttentionInto(const RoundedHeads& query, const RoundedHeads& key,
                          const RoundedValues& value, at::Tensor& out);

// Implementations in plain ATen. They run on a CPU, and tests compare the kernels with them.
RoundedHeads RoundQueriesReference(at::Tensor& query);
RoundedHeads RoundKeysReference(at::Tensor& key);
RoundedValues RoundValuesReference(const at::Tensor& value);
void RoundedAttentionReference(const RoundedHeads& query, const RoundedHeads& key,
                               const RoundedValues& value, at::Tensor& out);

}  // namespace wan
