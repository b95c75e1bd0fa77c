// The table of the autoencoders' kernels in the CUDA plug-in, whose static initialisers fill it
// when it is loaded. Until then, and where an entry does not support its arguments, the operators
// use ATen.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/fused_convolution.h"

namespace wan {

struct VaeCudaOps {
  // ChannelRmsNormSilu (channel_rms_norm.h) for x and out that keep the channels of a pixel
  // together. If it does not support their layout or size, it writes nothing and returns
  // false.
  bool (*channel_rms_norm_silu)(const at::Tensor& x, const at::Tensor& gamma,
                                const at::Tensor& out) = nullptr;
  // HasFusedConvolution and ConvolveFused (fused_convolution.h). They support compute capability
  // 9.0. fused_convolution returns false, and has written nothing, for what it does not support.
  bool (*supports_fused_convolution)(const at::Tensor& weight, Spread spread,
                                     bool allow_tf32) = nullptr;
  bool (*fused_convolution)(const FusedConvolution& convolution, at::Tensor& out) = nullptr;
};

VaeCudaOps& GetVaeCudaOps();

}  // namespace wan
