// Scaled dot-product attention without a mask.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace wan {

// Returns the attention of `query` [B, n, heads, head_dim] to `key` and `value` [B, m, heads,
// head_dim]; the result is [B, n, heads, head_dim]. All three have one dtype and device; they must
// be contiguous in the last dimension, the other strides are free. Scores are scaled by
// 1 / sqrt(head_dim), and the softmax is computed in fp32.
at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// The fewest queries with which a part of an attention on a CPU has the bits of the whole: LibTorch
// takes blocks of 256 from there on.
inline constexpr int64_t kFewestQueriesOfPart = 768;

// Gives the same bits as Attention on a CPU, computing `queries` of the queries at a time, a
// multiple of 256 and at least kFewestQueriesOfPart; `go_on` is called before each part. Returns an
// undefined tensor as soon as it returns false.
at::Tensor AttentionInParts(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            int64_t queries, const std::function<bool()>& go_on);

// The implementations that Attention can call.
enum class AttentionKernel {
  // Our own for Hopper GPUs (attention_sm90.cu): on long sequences 1.25 times as fast as cuDNN's.
  kHopper,
  // cuDNN's: on a Hopper GPU 1.8 times as fast as FlashAttention 2.
  kCudnn,
  // The one that LibTorch's own rules choose.
  kLibTorch,
};

// What the choice depends on.
struct AttentionProblem {
  at::DeviceType device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  // Of the GPU, ten times the major number plus the minor number; 0 where the plug-in is not
  // loaded.
  int compute_capability = 0;
};

// Returns kHopper on compute capability 9.0, which has these instructions alone, in bf16 for heads
// of 128 channels and at least 1024 keys: below, cuDNN is as fast or faster. Otherwise returns
// kCudnn where cuDNN has a kernel: on CUDA in bf16, for heads of at most 128 channels, a multiple
// of 8, and for more than one query and key.
AttentionKernel ChooseAttentionKernel(const AttentionProblem& problem);

}  // namespace wan
