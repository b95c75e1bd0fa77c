#include "engine/ops/attention.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>

namespace wan {
namespace {

// The limits of cuDNN's attention. It also refuses a single query and a single key.
constexpr int64_t kLargestCudnnHead = 128;
constexpr int64_t kCudnnHeadMultiple = 8;

}  // namespace

AttentionKernel ChooseAttentionKernel(const AttentionProblem& problem) {
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
  const AttentionKernel kernel = ChooseAttentionKernel({.device = query.device().type(),
                                                        .dtype = query.scalar_type(),
                                                        .queries = query.size(1),
                                                        .keys = key.size(1),
                                                        .head_dim = query.size(3)});
  if (kernel == AttentionKernel::kCudnn) {
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(q, k, v, /*attn_bias=*/std::nullopt,
                                                               /*compute_log_sumexp=*/false))
        .transpose(1, 2);
  }
  return at::scaled_dot_product_attention(q, k, v).transpose(1, 2);
}

}  // namespace wan
