#include "engine/ops/rounded_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"

namespace wan {
namespace {

constexpr double kLargestCode = 127;
// The mean of at most this many keys, at equal distances, is subtracted; any vector near the true
// mean will do.
constexpr int64_t kMostAveragedKeys = 1024;

// Multiplies the last dimension by the orthonormal Hadamard matrix if its size is a power of two.
at::Tensor Rotate(const at::Tensor& x) {
  const int64_t size = x.size(-1);
  if ((size & (size - 1)) != 0) return x;
  at::Tensor result = x;
  for (int64_t distance = 1; distance < size; distance *= 2) {
    const at::Tensor pairs = result.unflatten(-1, {-1, 2, distance});
    const at::Tensor low = pairs.select(-2, 0);
    const at::Tensor high = pairs.select(-2, 1);
    result = at::stack({low + high, low - high}, -2).flatten(-3);
  }
  return result / std::sqrt(static_cast<double>(size));
}

at::Tensor CodesIn(at::Tensor& x) { return x.view(at::kChar).narrow(-1, 0, x.size(-1)); }

// Returns round(127 x / largest); `largest` has one entry per row of x.
at::Tensor Codes(const at::Tensor& x, const at::Tensor& largest) {
  const at::Tensor inverse =
      at::where(largest == 0, at::zeros_like(largest), kLargestCode / largest);
  return (x * inverse.unsqueeze(-1)).round();
}

// Returns the keys or values whose mean is subtracted.
at::Tensor Averaged(const at::Tensor& rows) {
  const int64_t step = (rows.size(1) + kMostAveragedKeys - 1) / kMostAveragedKeys;
  return rows.slice(1, 0, rows.size(1), step);
}

int64_t Tiles(int64_t keys) { return (keys + kRoundedKeyTile - 1) / kRoundedKeyTile; }

// Puts the last dimension, a multiple of 16, into the order of RoundedValues: 0 1 8 9 2 3 10 11 4 5
// 12 13 6 7 14 15.
at::Tensor InOrderOfProduct(const at::Tensor& codes) {
  return codes.unflatten(-1, {-1, 2, 4, 2}).transpose(-3, -2).flatten(-4);
}
at::Tensor InOrderOfKeys(const at::Tensor& codes) {
  return codes.unflatten(-1, {-1, 4, 2, 2}).transpose(-3, -2).flatten(-4);
}

// Computes one head (rounded_attention.h): queries [B, m, head_dim] and keys [B, n, head_dim],
// codes with their scales [B, m] and [B, tiles], and codes of values [B, head_dim, keys] in the
// order of the product. Returns the mean codes of the values less kMeanValueCode, [B, m, head_dim].
at::Tensor AttentionOfHead(const at::Tensor& query, const at::Tensor& query_scales,
                           const at::Tensor& key, const at::Tensor& key_scales,
                           const at::Tensor& value) {
  const double log2_e = std::log2(std::exp(1.0));
  const int64_t keys = key.size(1);
  const at::Tensor queries = query.to(at::kFloat) * (query_scales * log2_e).unsqueeze(-1);
  const at::Tensor values = InOrderOfKeys(value).transpose(1, 2).to(at::kFloat) - kMeanValueCode;
  at::Tensor maximum;
  at::Tensor unit;
  at::Tensor sum;
  at::Tensor mixed;
  for (int64_t tile = Tiles(keys) - 1; tile >= 0; --tile) {
    const int64_t first = tile * kRoundedKeyTile;
    const int64_t count = std::min(kRoundedKeyTile, keys - first);
    const at::Tensor scores =
        at::matmul(queries, key.narrow(1, first, count).to(at::kFloat).transpose(1, 2)) *
        key_scales.narrow(1, tile, 1).unsqueeze(-1);
    const at::Tensor largest = scores.amax(-1, /*keepdim=*/true);
    maximum = maximum.defined() ? at::maximum(maximum, largest) : largest;
    const at::Tensor next_unit = at::maximum(largest, maximum - kRoundedDepth);
    const at::Tensor codes = at::exp2(scores - next_unit).mul_(255).round_();
    const at::Tensor product = at::matmul(codes, values.narrow(1, first, count));
    const at::Tensor total = codes.sum(-1, /*keepdim=*/true);
    if (unit.defined()) {
      const at::Tensor factor = at::exp2(unit - next_unit);
      sum = sum * factor + total;
      mixed = mixed * factor + product;
    } else {
      sum = total;
      mixed = product;
    }
    unit = next_unit;
  }
  return mixed / sum;
}

}  // namespace

RoundedHeads RoundedHeads::Video(int64_t entry) const {
  return {codes.narrow(0, entry, 1), scales.narrow(0, entry, 1)};
}

RoundedValues RoundedValues::Video(int64_t entry) const {
  return {codes.narrow(0, entry, 1), scales.narrow(0, entry, 1), means.narrow(0, entry, 1)};
}

RoundedHeads RoundedHeads::Queries(int64_t first, int64_t count) const {
  return {codes.narrow(1, first, count), scales.narrow(2, first, count)};
}

bool RoundsAttention(const at::Tensor& query, const at::Tensor& key) {
  if (!query.is_cuda()) return true;
  return GetCudaOps().rounded_attention != nullptr &&
         ChooseAttentionKernel({.device = query.device().type(),
                                .dtype = query.scalar_type(),
                                .queries = query.size(1),
                                .keys = key.size(1),
                                .head_dim = query.size(3),
                                .compute_capability = ComputeCapability(query.device())}) ==
             AttentionKernel::kHopper &&
         HasAlignedRows(query) && HasAlignedRows(key);
}

RoundedHeads RoundQueries(at::Tensor& query) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::round_queries", (std::vector<c10::IValue>{query}));
  if (!query.is_cuda()) return RoundQueriesReference(query);
  RoundedHeads result{CodesIn(query), at::empty({query.size(0), query.size(2), query.size(1)},
                                                query.options().dtype(at::kFloat))};
  GetCudaOps().round_queries(query, result);
  return result;
}

RoundedHeads RoundKeys(at::Tensor& key) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::round_keys", (std::vector<c10::IValue>{key}));
  if (!key.is_cuda()) return RoundKeysReference(key);
  RoundedHeads result{CodesIn(key), at::empty({key.size(0), key.size(2), Tiles(key.size(1))},
                                              key.options().dtype(at::kFloat))};
  GetCudaOps().round_keys(key, Averaged(key), result);
  return result;
}

RoundedValues RoundValues(const at::Tensor& value) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::round_values", (std::vector<c10::IValue>{value}));
  if (!value.is_cuda()) return RoundValuesReference(value);
  const int64_t batch = value.size(0);
  const int64_t heads = value.size(2);
  const int64_t head_dim = value.size(3);
  const auto wide = value.options().dtype(at::kFloat);
  RoundedValues result{at::empty({batch, heads, head_dim, Tiles(value.size(1)) * kRoundedKeyTile},
                                 value.options().dtype(at::kByte)),
                       at::empty({batch, heads, head_dim}, wide),
                       at::empty({batch, heads, head_dim}, wide)};
  GetCudaOps().round_values(value, Averaged(value), result);
  return result;
}

void RoundedAttentionInto(const RoundedHeads& query, const RoundedHeads& key,
                          const RoundedValues& value, at::Tensor& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::rounded_attention",
                                (std::vector<c10::IValue>{query.codes, key.codes}));
  if (out.is_cuda() && GetCudaOps().rounded_attention(query, key, value, out)) return;
  RoundedAttentionReference(query, key, value, out);
}

// The references round head by head, because all heads at once would take several times their
// memory.
RoundedHeads RoundQueriesReference(at::Tensor& query) {
  const double factor = 1 / (kLargestCode * std::sqrt(static_cast<double>(query.size(3))));
  RoundedHeads result{CodesIn(query), at::empty({query.size(0), query.size(2), query.size(1)},
                                                query.options().dtype(at::kFloat))};
  for (int64_t head = 0; head < query.size(2); ++head) {
    const at::Tensor rotated = Rotate(query.select(2, head).to(at::kFloat));
    const at::Tensor largest = rotated.abs().amax(-1);
    result.scales.select(1, head).copy_(largest * factor);
    result.codes.select(2, head).copy_(Codes(rotated, largest));
  }
  return result;
}

RoundedHeads RoundKeysReference(at::Tensor& key) {
  const int64_t keys = key.size(1);
  const int64_t tiles = Tiles(keys);
  const at::Tensor means = Averaged(key).to(at::kFloat).mean(1, /*keepdim=*/true);
  RoundedHeads result{
      CodesIn(key), at::empty({key.size(0), key.size(2), tiles}, key.options().dtype(at::kFloat))};
  for (int64_t head = 0; head < key.size(2); ++head) {
    const at::Tensor rotated = Rotate(key.select(2, head).to(at::kFloat) - means.select(2, head));
    const at::Tensor by_row =
        at::constant_pad_nd(rotated.abs().amax(-1), {0, tiles * kRoundedKeyTile - keys});
    const at::Tensor by_tile = by_row.unflatten(1, {tiles, kRoundedKeyTile}).amax(2);
    const at::Tensor largest = by_tile.repeat_interleave(kRoundedKeyTile, 1).narrow(1, 0, keys);
    result.scales.select(1, head).copy_(by_tile / kLargestCode);
    result.codes.select(2, head).copy_(Codes(rotated, largest));
  }
  return result;
}

RoundedValues RoundValuesReference(const at::Tensor& value) {
  const int64_t keys = value.size(1);
  const auto wide = value.options().dtype(at::kFloat);
  const std::vector<int64_t> channels = {value.size(0), value.size(2), value.size(3)};
  RoundedValues result{
      at::zeros({value.size(0), value.size(2), value.size(3), Tiles(keys) * kRoundedKeyTile},
                value.options().dtype(at::kByte)),
      at::empty(channels, wide), at::empty(channels, wide)};
  for (int64_t head = 0; head < value.size(2); ++head) {
    const at::Tensor by_channel = value.select(2, head).to(at::kFloat).transpose(1, 2);
    const at::Tensor mean = Averaged(value.select(2, head)).to(at::kFloat).mean(1);
    const at::Tensor centred = by_channel - mean.unsqueeze(-1);
    const at::Tensor largest = centred.abs().amax(-1);
    const at::Tensor scales = largest / kLargestCode;
    const at::Tensor codes = Codes(centred, largest);
    const at::Tensor lost = centred - codes * scales.unsqueeze(-1);
    const at::Tensor padded =
        at::constant_pad_nd(codes + kMeanValueCode, {0, result.codes.size(3) - keys});
    result.codes.select(1, head).copy_(InOrderOfProduct(padded));
    result.scales.select(1, head).copy_(scales);
    result.means.select(1, head).copy_(mean + lost.mean(-1));
  }
  return result;
}

void RoundedAttentionReference(const RoundedHeads& query, const RoundedHeads& key,
                               const RoundedValues& value, at::Tensor& out) {
  for (int64_t head = 0; head < out.size(2); ++head) {
    const at::Tensor mean_codes = AttentionOfHead(
        query.codes.select(2, head), query.scales.select(1, head), key.codes.select(2, head),
        key.scales.select(1, head), value.codes.select(1, head));
    out.select(2, head).copy_(mean_codes * value.scales.select(1, head).unsqueeze(1) +
                              value.means.select(1, head).unsqueeze(1));
  }
}

}  // namespace wan
