// Scaled dot-product attention without a mask.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace wan {

// Returns the attention of `query` [B, n, heads, head_dim] to `key` and `value` [B, m, heads,
// head_dim]; the result is [B, n, heads, head_dim]. All three tensors share dtype and device and
// are contiguous in the last dimension; their other strides are free. Scores are scaled by 1 /
// sqrt(head_dim), and the softmax is computed in fp32.
at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// Writes the result of Attention to `out`, which has the query's shape and is contiguous. The
// caller may split the queries of a long attention into parts. A query's result does not depend on
// the other queries of the call, as long as parts begin at multiples of kQueryMultiple and, on a
// CPU, have at least kFewestCpuQueries.
void AttentionInto(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   at::Tensor& out);

// Kernels work on tiles of this many queries, or of a number that divides it.
inline constexpr int64_t kQueryMultiple = 256;
// With fewer queries LibTorch's CPU kernel takes smaller tiles, which changes the result's bits.
inline constexpr int64_t kFewestCpuQueries = 768;

// The kernels that Attention can call.
enum class AttentionKernel {
  // Our kernel for Hopper GPUs (attention_sm90.cu): 1.25 times as fast as cuDNN on long sequences.
  kHopper,
  // cuDNN's kernel: 1.8 times as fast as FlashAttention 2 on a Hopper GPU.
  kCudnn,
  // The kernel that LibTorch chooses.
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

// Returns a device's AttentionProblem::compute_capability; 0 for a CPU.
int ComputeCapability(at::Device device);

// The properties of a call by which the kernel is chosen.
struct AttentionProblem {
  at::DeviceType device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  // Ten times the major plus the minor number of the GPU; 0 if the plug-in is not loaded.
  int compute_capability = 0;
};

// Returns kHopper on compute capability 9.0 in bf16 for heads of 128 channels and at least 1024
// keys: with fewer keys cuDNN is as fast or faster, and other GPUs lack the instructions. Otherwise
// returns kCudnn where cuDNN has a kernel: on CUDA in bf16, for heads of at most 128 channels, a
// multiple of 8, and more than one query and key.
AttentionKernel ChooseAttentionKernel(const AttentionProblem& problem);

// Returns whether `tensor` and each of its rows start at multiples of 16 bytes, as the kernels of
// cuDNN and our own require. Attention copies other tensors.
bool HasAlignedRows(const at::Tensor& tensor);

}  // namespace wan
