// Attention whose two products, queries with keys and probabilities with values, are computed in
// 8-bit integers.
//
// Softmax does not change if one vector is subtracted from all keys, and scores do not change if
// queries and keys are rotated alike. So before rounding, the code subtracts the keys' mean, and
// multiplies queries and keys by the Hadamard matrix of the head's size, which spreads a channel's
// outliers over all channels (QuaRot, arXiv 2404.00456; SageAttention 2, arXiv 2411.10958). The
// code also subtracts the values' mean before rounding, and adds it to the result.
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

// Number of keys that share a scale, which is the kernel's tile of keys.
inline constexpr int64_t kRoundedKeyTile = 128;
// The code of a channel's mean value. With this offset all codes of values are positive, so no sum
// of products is negative.
inline constexpr int64_t kMeanValueCode = 128;
// A power of two: a tile's unit assumes a largest probability of at least 2^-24 of the row's
// maximum so far. The kernel goes from the last tile to the first.
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

// The codes of 16 neighbouring keys are in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15, because
// a thread of the kernel holds the keys' probabilities in this order. Codes of keys beyond the last
// key have no meaning.
struct RoundedValues {
  at::Tensor codes;   // uint8 [B, heads, head_dim, keys], keys a multiple of kRoundedKeyTile
  at::Tensor scales;  // fp32 [B, heads, head_dim]
  // fp32 [B, heads, head_dim]: the means that are added to the result. They include the mean
  // rounding error of the codes, because rounding goes up and down unequally often, above all for
  // values in bf16.
  at::Tensor means;

  // Returns the codes, scales and means of one batch entry.
  RoundedValues Video(int64_t entry) const;
};

// Returns whether RoundedAttentionInto saves time for queries and keys [B, n, heads, head_dim] like
// these. On a GPU it does so only where it has a kernel: compute capability 9.0, bf16, heads of 128
// channels, at least 1024 keys. Always true on a CPU, whose result is the kernel's reference.
bool RoundsAttention(const at::Tensor& query, const at::Tensor& key);

// Round queries or keys [B, n, heads, head_dim], fp32 or bf16, in place: the codes occupy the first
// bytes of each head's row, whose values are lost. If head_dim is not a power of two, queries and
// keys are not rotated.
RoundedHeads RoundQueries(at::Tensor& query);
RoundedHeads RoundKeys(at::Tensor& key);

// Rounds values [B, n, heads, head_dim], fp32 or bf16, into new memory.
RoundedValues RoundValues(const at::Tensor& value);

// Computes the attention of `query` to `key` and `value`, which have the same number of keys.
// Writes it to the contiguous tensor `out` [B, m, heads, head_dim], fp32 or bf16. Parts of the
// queries may be computed one after the other, as with AttentionInto (attention.h).
void RoundedAttentionInto(const RoundedHeads& query, const RoundedHeads& key,
                          const RoundedValues& value, at::Tensor& out);

// Implementations in plain ATen. These implementations run on a CPU, and tests compare the kernels
// with them.
RoundedHeads RoundQueriesReference(at::Tensor& query);
RoundedHeads RoundKeysReference(at::Tensor& key);
RoundedValues RoundValuesReference(const at::Tensor& value);
void RoundedAttentionReference(const RoundedHeads& query, const RoundedHeads& key,
                               const RoundedValues& value, at::Tensor& out);

}  // namespace wan
