// The table of the autoencoders' CUDA kernels, which the plug-in fills when it is loaded. Until the
// plug-in is loaded, and for arguments that an entry does not support, the operators use ATen.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/fused_convolution.h"

namespace wan {

struct VaeCudaOps {
  // The kernel of ChannelRmsNormSilu (channel_rms_norm.h) for channels-last x and out. The kernel
  // returns false and writes nothing for other layouts or sizes.
  bool (*channel_rms_norm_silu)(const at::Tensor& x, const at::Tensor& gamma,
                                const at::Tensor& out) = nullptr;
  // The kernels of HasFusedConvolution and ConvolveFused (fused_convolution.h). Both kernels need
  // compute capability 9.0. If the kernel fused_convolution does not support its arguments, it
  // returns false and writes nothing.
  bool (*supports_fused_convolution)(const at::Tensor& weight, Spread spread,
                                     bool allow_tf32) = nullptr;
  bool (*fused_convolution)(const FusedConvolution& convolution, at::Tensor& out) = nullptr;
};

VaeCudaOps& GetVaeCudaOps();

}  // namespace wan
