// The table of the transformer's CUDA kernels, which the plug-in fills when it is loaded
// (engine/device). The operators use ATen until the plug-in is loaded, and for arguments that a
// kernel does not support.
//
// Each entry has the contract of the operator of the same name, except that it returns false and
// writes nothing if it does not support the dtype, layout or size.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

struct CudaOps {
  // The kernel of AttentionInto (attention.h). The kernel needs compute capability 9.0.
  bool (*attention)(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    at::Tensor& out) = nullptr;
  // The contract is in layer_norm_modulate.h.
  bool (*layer_norm_modulate)(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                              const at::Tensor& index, double eps, at::Tensor& out) = nullptr;
  // The contract is in gate_residual_norm.h.
  bool (*gate_residual_norm)(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                             const at::Tensor& scale, const at::Tensor& shift,
                             const at::Tensor& index, double eps, at::Tensor& out) = nullptr;
  // The contract is in rms_norm_rope.h.
  bool (*rms_norm_rope)(at::Tensor& x, const at::Tensor& weight, double eps,
                        const at::Tensor& rotary) = nullptr;

  // Returns ten times the major plus the minor number of a GPU's compute capability, for example
  // 90.
  int (*compute_capability)(int device) = nullptr;
};

CudaOps& GetCudaOps();

}  // namespace wan
