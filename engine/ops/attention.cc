#include "engine/ops/attention.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ops/cuda_ops.h"

namespace wan {
namespace {

// The head sizes that cuDNN's attention accepts: at most kLargestCudnnHead channels, a multiple of
// kCudnnHeadMultiple. cuDNN also refuses a single query with a single key.
constexpr int64_t kLargestCudnnHead = 128;
constexpr int64_t kCudnnHeadMultiple = 8;

// The Hopper kernel supports only heads of kHopperHead channels. By measurement, the kernel is
// faster than cuDNN from kFewestHopperKeys keys on.
constexpr int kHopperCapability = 90;
constexpr int64_t kHopperHead = 128;
constexpr int64_t kFewestHopperKeys = 1024;

AttentionKernel KernelFor(const at::Tensor& query, const at::Tensor& key) {
  return ChooseAttentionKernel({.device = query.device().type(),
                                .dtype = query.scalar_type(),
                                .queries = query.size(1),
                                .keys = key.size(1),
                                .head_dim = query.size(3),
                                .compute_capability = ComputeCapability(query.device())});
}

// Copies the tensor if its rows are not aligned. The copy has aligned rows, because a head has a
// multiple of 8 channels.
at::Tensor WithAlignedRows(const at::Tensor& tensor) {
  return HasAlignedRows(tensor) ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

// Writes the attention to `out` with the Hopper kernel. Returns false if the kernel cannot write
// `out`.
bool HopperAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     at::Tensor& out) {
  return GetCudaOps().attention(WithAlignedRows(query), WithAlignedRows(key),
                                WithAlignedRows(value), out);
}

at::Tensor LibraryAttention(AttentionKernel kernel, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value) {
  if (kernel != AttentionKernel::kCudnn) {
    return at::scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2),
                                            value.transpose(1, 2))
        .transpose(1, 2);
  }
  // Align the rows here: cuDNN's function, called directly, checks no strides and could read out of
  // bounds.
  const at::Tensor q = WithAlignedRows(query).transpose(1, 2);
  const at::Tensor k = WithAlignedRows(key).transpose(1, 2);
  const at::Tensor v = WithAlignedRows(value).transpose(1, 2);
  return std::get<0>(at::_scaled_dot_product_cudnn_attention(q, k, v, /*attn_bias=*/std::nullopt,
                                                             /*compute_log_sumexp=*/false))
      .transpose(1, 2);
}

}  // namespace

int ComputeCapability(at::Device device) {
  const auto ask = GetCudaOps().compute_capability;
  return device.is_cuda() && ask != nullptr ? ask(device.index()) : 0;
}

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

bool HasAlignedRows(const at::Tensor& tensor) {
  constexpr int64_t kAlignment = 16;
  const auto element = static_cast<int64_t>(tensor.element_size());
  if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment != 0) return false;
  for (int64_t i = 0; i + 1 < tensor.dim(); ++i) {
    if (tensor.size(i) > 1 && tensor.stride(i) * element % kAlignment != 0) return false;
  }
  return true;
}

at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::attention", (std::vector<c10::IValue>{query, key}));
  const AttentionKernel kernel = KernelFor(query, key);
  if (kernel == AttentionKernel::kHopper) {
    at::Tensor out = at::empty(query.sizes(), query.options());
    if (HopperAttention(query, key, value, out)) return out;
  }
  return LibraryAttention(kernel, query, key, value);
}

void AttentionInto(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   at::Tensor& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::attention", (std::vector<c10::IValue>{query, key}));
  const AttentionKernel kernel = KernelFor(query, key);
  if (kernel == AttentionKernel::kHopper && HopperAttention(query, key, value, out)) return;
  out.copy_(LibraryAttention(kernel, query, key, value));
}

}  // namespace wan
