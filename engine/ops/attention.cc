#include "engine/ops/attention.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>

namespace wan {
namespace {

constexpr int64_t kLargestCudnnHead = 128;

// cuDNN has no attention of a single query or key.
bool SuitsCudnn(const at::Tensor& query, const at::Tensor& key) {
  return query.is_cuda() && query.scalar_type() == at::kBFloat16 && query.size(3) % 8 == 0 &&
         query.size(3) <= kLargestCudnnHead && query.size(1) > 1 && key.size(1) > 1;
}

}  // namespace

at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::Tensor q = query.transpose(1, 2);
  const at::Tensor k = key.transpose(1, 2);
  const at::Tensor v = value.transpose(1, 2);
  if (SuitsCudnn(query, key)) {
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(q, k, v, /*attn_bias=*/std::nullopt,
                                                               /*compute_log_sumexp=*/false))
        .transpose(1, 2);
  }
  return at::scaled_dot_product_attention(q, k, v).transpose(1, 2);
}

}  // namespace wan
