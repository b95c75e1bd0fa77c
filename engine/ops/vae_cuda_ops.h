// The table of the autoencoders' kernels in the CUDA plug-in, whose static initialisers fill it
// when it is loaded. Until then, and where an entry does not support its arguments, the operators
// use ATen.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

struct VaeCudaOps {
  // ChannelRmsNormSilu (channel_rms_norm.h) for x and out that keep the channels of a pixel
  // together. If it does not support their layout or size, it writes nothing and returns
  // false.
  bool (*channel_rms_norm_silu)(const at::Tensor& x, const at::Tensor& gamma,
                                const at::Tensor& out) = nullptr;
};

VaeCudaOps& GetVaeCudaOps();

}  // namespace wan
