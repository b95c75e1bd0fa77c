#include "engine/ops/rounded_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <cmath>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"

namespace wan {
namespace {

constexpr double kLargestCode = 127;
// The mean is that of at most this many keys at equal distances: any vector near it will do.
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

// `largest` has one entry per row of x.
at::Tensor Codes(const at::Tensor& x, const at::Tensor& largest) {
  const at::Tensor inverse =
      at::where(largest == 0, at::zeros_like(largest), kLargestCode / largest);
  return (x * inverse.unsqueeze(-1)).round().to(at::kChar);
}

// The keys whose mean is subtracted.
at::Tensor AveragedKeys(const at::Tensor& key) {
  const int64_t step = (key.size(1) + kMostAveragedKeys - 1) / kMostAveragedKeys;
  return key.slice(1, 0, key.size(1), step);
}

}  // namespace

RoundedHeads RoundedHeads::Video(int64_t entry) const {
  return {codes.narrow(0, entry, 1), scales.narrow(0, entry, 1)};
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
  const int64_t tiles = (key.size(1) + kRoundedKeyTile - 1) / kRoundedKeyTile;
  RoundedHeads result{
      CodesIn(key), at::empty({key.size(0), key.size(2), tiles}, key.options().dtype(at::kFloat))};
  GetCudaOps().round_keys(key, AveragedKeys(key), result);
  return result;
}

void RoundedAttentionInto(const RoundedHeads& query, const RoundedHeads& key,
                          const at::Tensor& value, at::Tensor& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::rounded_attention",
                                (std::vector<c10::IValue>{query.codes, key.codes}));
  if (value.is_cuda() && GetCudaOps().rounded_attention(query, key, value, out)) return;
  RoundedAttentionReference(query, key, value, out);
}

RoundedHeads RoundQueriesReference(at::Tensor& query) {
  const at::Tensor rotated = Rotate(query.to(at::kFloat));
  const at::Tensor largest = rotated.abs().amax(-1);
  const double factor = 1 / (kLargestCode * std::sqrt(static_cast<double>(query.size(3))));
  const at::Tensor rounded = Codes(rotated, largest);
  RoundedHeads result{CodesIn(query), (largest * factor).transpose(1, 2).contiguous()};
  result.codes.copy_(rounded);
  return result;
}

RoundedHeads RoundKeysReference(at::Tensor& key) {
  const at::Tensor wide = key.to(at::kFloat);
  const at::Tensor rotated = Rotate(wide - AveragedKeys(wide).mean(1, /*keepdim=*/true));
  const int64_t keys = key.size(1);
  const int64_t tiles = (keys + kRoundedKeyTile - 1) / kRoundedKeyTile;
  const at::Tensor by_row =
      at::constant_pad_nd(rotated.abs().amax(-1), {0, 0, 0, tiles * kRoundedKeyTile - keys});
  const at::Tensor by_tile = by_row.unflatten(1, {tiles, kRoundedKeyTile}).amax(2);
  const at::Tensor largest = by_tile.repeat_interleave(kRoundedKeyTile, 1).narrow(1, 0, keys);
  const at::Tensor rounded = Codes(rotated, largest);
  RoundedHeads result{CodesIn(key), (by_tile / kLargestCode).transpose(1, 2).contiguous()};
  result.codes.copy_(rounded);
  return result;
}

void RoundedAttentionReference(const RoundedHeads& query, const RoundedHeads& key,
                               const at::Tensor& value, at::Tensor& out) {
  const at::Tensor key_scales =
      key.scales.repeat_interleave(kRoundedKeyTile, 2).narrow(2, 0, key.codes.size(1));
  const auto values = [](const at::Tensor& codes, const at::Tensor& scales) {
    return codes.to(at::kFloat).transpose(1, 2) * scales.unsqueeze(-1);
  };
  const at::Tensor result = at::scaled_dot_product_attention(
      values(query.codes, query.scales), values(key.codes, key_scales),
      value.to(at::kFloat).transpose(1, 2), /*attn_mask=*/{}, /*dropout_p=*/0,
      /*is_causal=*/false, /*scale=*/1.0);
  out.copy_(result.transpose(1, 2));
}

}  // namespace wan
