// The kernels of the autoencoders that the CUDA plug-in brings. Its static initialisers fill the
// table when it is loaded; until then, and where an entry does not support its arguments, the
// operators use ATen.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

struct VaeCudaOps {
  // ChannelRmsNormSilu (channel_rms_norm.h) for x and out that keep the channels of a pixel
  // together. Writes nothing and gives false if it does not support their layout or size.
  bool (*channel_rms_norm_silu)(const at::Tensor& x, const at::Tensor& gamma,
                                const at::Tensor& out) = nullptr;
};

VaeCudaOps& GetVaeCudaOps();

}  // namespace wan
