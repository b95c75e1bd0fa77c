#include "engine/ops/attention.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>

#include "engine/ops/cuda_ops.h"

namespace wan {
namespace {

// The limits of cuDNN's attention. It also refuses a single query and a single key.
constexpr int64_t kLargestCudnnHead = 128;
constexpr int64_t kCudnnHeadMultiple = 8;

// The Hopper kernel's only head, and the fewest keys for which it was measured to be the faster
// one.
constexpr int kHopperCapability = 90;
constexpr int64_t kHopperHead = 128;
constexpr int64_t kFewestHopperKeys = 1024;

int ComputeCapability(at::Device device) {
  const auto ask = GetCudaOps().compute_capability;
  return device.is_cuda() && ask != nullptr ? ask(device.index()) : 0;
}

}  // namespace

AttentionKernel ChooseAttentionKernel(const AttentionProblem& problem) {
  const bool hopper = problem.device == at::kCUDA && problem.dtype == at::kBFloat16 &&
                      problem.compute_capability == kHopperCapability &&
                      problem.head_dim == kHopperHead && problem.keys >= kFewestHopperKeys;
  if (hopper) return AttentionKernel::kHopper;
  const bool cudnn = problem.device == at::kCUDA && problem.dtype == at::kBFloat16 &&
                     problem.head_dim % kCudnnHeadMultiple == 0 &&
                     problem.head_dim <= kLargestCudnnHead && problem.queries > 1 &&
                     problem.keys > 1;
  return cudnn ? AttentionKernel::kCudnn : AttentionKernel::kLibTorch;
}

at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::Tensor q = query.transpose(1, 2);
  const at::Tensor k = key.transpose(1, 2);
  const at::Tensor v = value.transpose(1, 2);
  const AttentionKernel kernel =
      ChooseAttentionKernel({.device = query.device().type(),
                             .dtype = query.scalar_type(),
                             .queries = query.size(1),
                             .keys = key.size(1),
                             .head_dim = query.size(3),
                             .compute_capability = ComputeCapability(query.device())});
  if (kernel == AttentionKernel::kHopper) {
    at::Tensor out = at::empty(query.sizes(), query.options());
    const auto attention = GetCudaOps().attention;
    if (attention(query, key, value, out)) return out;
    // It takes no start and no stride but multiples of 16 bytes. Copies have them.
    const auto copy = [](const at::Tensor& t) { return t.clone(at::MemoryFormat::Contiguous); };
    if (attention(copy(query), copy(key), copy(value), out)) return out;
  }
  if (kernel == AttentionKernel::kCudnn) {
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(q, k, v, /*attn_bias=*/std::nullopt,
                                                               /*compute_log_sumexp=*/false))
        .transpose(1, 2);
  }
  return at::scaled_dot_product_attention(q, k, v).transpose(1, 2);
}

at::Tensor AttentionInParts(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            int64_t queries, const std::function<bool()>& go_on) {
  const int64_t all = query.size(1);
  at::Tensor out = at::empty(query.sizes(), query.options());
  for (int64_t first = 0; first < all;) {
    if (!go_on()) return {};
    // The last part takes what would be too few for a part of its own.
    const int64_t left = all - first;
    const int64_t count = left < queries + kFewestQueriesOfPart ? left : queries;
    out.narrow(1, first, count).copy_(Attention(query.narrow(1, first, count), key, value));
    first += count;
  }
  return out;
}

}  // namespace wan
