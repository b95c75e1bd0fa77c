// Scaled dot-product attention without a mask.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

// query [B, n, heads, head_dim], key and value [B, m, heads, head_dim], of one dtype and device,
// contiguous in the last dimension and otherwise strided at will -> [B, n, heads, head_dim]. Scores
// are scaled by 1 / sqrt(head_dim); the softmax is fp32.
//
// On CUDA in bf16 with head_dim <= 128 it is cuDNN's, the fastest there (1.8 times FlashAttention 2
// on a Hopper GPU); otherwise whatever LibTorch chooses.
at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

}  // namespace wan
