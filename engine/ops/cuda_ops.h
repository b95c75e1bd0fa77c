// The table of the transformer's kernels in the CUDA plug-in. Until the plug-in is loaded
// (engine/device), and where a kernel does not support its arguments, the operators use ATen.
//
// Every entry has the contract of the operator of the same name. If it does not support dtype,
// layout or size, it writes nothing and returns false.
#pragma once

#include <ATen/core/Tensor.h>

namespace wan {

struct CudaOps {
  // attention.h, into `out` of the query's shape, contiguous. It supports compute capability 9.0.
  bool (*attention)(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    at::Tensor& out) = nullptr;
  // layer_norm_modulate.h
  bool (*layer_norm_modulate)(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                              const at::Tensor& index, double eps, at::Tensor& out) = nullptr;
  // gate_residual_norm.h
  bool (*gate_residual_norm)(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                             const at::Tensor& scale, const at::Tensor& shift,
                             const at::Tensor& index, double eps, at::Tensor& out) = nullptr;
  // rms_norm_rope.h
  bool (*rms_norm_rope)(at::Tensor& x, const at::Tensor& weight, double eps,
                        const at::Tensor& rotary) = nullptr;

  // No operator: returns ten times the major number plus the minor number of a GPU's compute
  // capability, for example 90.
  int (*compute_capability)(int device) = nullptr;
};

CudaOps& GetCudaOps();

}  // namespace wan
