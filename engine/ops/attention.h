// Scaled dot-product attention without a mask.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace wan {

// Returns the attention of `query` [B, n, heads, head_dim] to `key` and `value` [B, m, heads,
// head_dim]; the result is [B, n, heads, head_dim]. All three have one dtype and device; they must
// be contiguous in the last dimension, the other strides are free. Scores are scaled by
// 1 / sqrt(head_dim), and the softmax is computed in fp32.
at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// The same, written into `out`, which has the query's shape and is contiguous: for callers that
// compute a long attention one part of its queries after the other. A query's result does not
// depend on the other queries of the call, as long as parts begin at multiples of kQueryMultiple
// and, on a CPU, have at least kFewestCpuQueries.
void AttentionInto(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   at::Tensor& out);

// Kernels work on tiles of this many queries, or of a divisor of that.
inline constexpr int64_t kQueryMultiple = 256;
// With fewer queries LibTorch's kernel for the CPU takes smaller tiles, which have other bits.
inline constexpr int64_t kFewestCpuQueries = 768;

// The implementations that Attention can call.
enum class AttentionKernel {
  // Our own for Hopper GPUs (attention_sm90.cu): on long sequences 1.25 times as fast as cuDNN's.
  kHopper,
  // cuDNN's: on a Hopper GPU 1.8 times as fast as FlashAttention 2.
  kCudnn,
  // The one that LibTorch's own rules choose.
  kLibTorch,
};

constexpr std::string_view NameOf(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kHopper:
      return "hopper";
    case AttentionKernel::kCudnn:
      return "cudnn";
    case AttentionKernel::kLibTorch:
      return "libtorch";
  }
  return "";
}

// Returns AttentionProblem::compute_capability of a device; 0 for a CPU.
int ComputeCapability(at::Device device);

// The facts on which the choice depends.
struct AttentionProblem {
  at::DeviceType device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  // The GPU's, as ten times the major plus the minor number; 0 if the plug-in is not loaded.
  int compute_capability = 0;
};

// Returns kHopper on compute capability 9.0, which has these instructions alone, in bf16 for heads
// of 128 channels and at least 1024 keys: below, cuDNN is as fast or faster. Otherwise returns
// kCudnn where cuDNN has a kernel: on CUDA in bf16, for heads of at most 128 channels, a multiple
// of 8, and for more than one query and key.
AttentionKernel ChooseAttentionKernel(const AttentionProblem& problem);

// Returns whether `tensor` starts at a multiple of 16 bytes and all strides that are used are
// multiples of that, as the kernels of cuDNN and our own load it. Attention copies tensors that do
// not.
bool HasAlignedRows(const at::Tensor& tensor);

}  // namespace wan
