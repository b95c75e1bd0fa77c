// Convolution in two or three dimensions with everything that may vary between runs of one model
// said explicitly, rather than read from LibTorch's process-wide switches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace wan {

// How the convolutions of one component run. Decided once, when its weights are loaded.
struct ConvolutionPolicy {
  // CUDA, fp32: round the inputs of the products to TF32.
  bool allow_tf32 = false;
  // Activations and kernels keep their channels innermost. cuDNN's tensor-core kernels want that
  // and transpose what comes otherwise; with one video at a time it also makes frames outermost, so
  // that a run of frames is one piece of memory.
  bool channels_last = false;

  // Channels last on CUDA, as they come on a CPU.
  static ConvolutionPolicy For(at::Device device, bool allow_tf32);

  // Of a tensor with `dim` dimensions (4 or 5).
  at::MemoryFormat Format(int64_t dim) const;
};

// x [N, in, ...] -> [N, out, ...], with a symmetric zero border of `padding`.
class Convolution {
 public:
  // `weight` is [out, in, k...] with 2 or 3 kernel dimensions, `bias` [out]; `stride` and `padding`
  // have one entry for each kernel dimension.
  Convolution(const at::Tensor& weight, at::Tensor bias, std::vector<int64_t> stride,
              std::vector<int64_t> padding, ConvolutionPolicy policy);

  at::Tensor operator()(const at::Tensor& x) const;

  const at::Tensor& weight() const { return weight_; }
  const ConvolutionPolicy& policy() const { return policy_; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor bias_over_pixels_;  // bias_ as [out, 1, ...], to be added to an output
  std::vector<int64_t> stride_;
  std::vector<int64_t> padding_;
  std::vector<int64_t> dilation_;  // ones
  ConvolutionPolicy policy_;
};

}  // namespace wan
