// The table of the transformer's CUDA kernels, which the plug-in fills when it is loaded
// (engine/device). The operators use ATen until the plug-in is loaded, and for arguments that a
// kernel does not support.
//
// Each entry has the contract of the operator of the same name, except that it returns false and
// writes nothing if it does not support the dtype, layout or size.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/rounded_attention.h"
#include "engine/ops/rounded_linear.h"
#include "engine/ops/rounding.h"

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
  // The kernel of both operators with a rounded result (gate_residual_norm.h,
  // layer_norm_modulate.h). If `y` is undefined, adds nothing to x before the norm.
  bool (*rounded_norm)(const at::Tensor& y, const at::Tensor& gate, at::Tensor& x,
                       const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& index,
                       double eps, const RoundedRows& out) = nullptr;
  // The contract is in rms_norm_rope.h.
  bool (*rms_norm_rope)(at::Tensor& x, const at::Tensor& weight, double eps,
                        const at::Tensor& rotary) = nullptr;

  // The contract is in rounding.h.
  bool (*round_rows)(const at::Tensor& x, const RoundedRows& out) = nullptr;
  // The contract is in rounded_linear.h. Needs compute capability 9.0.
  bool (*rounded_linear)(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& bias,
                         Activation activation, at::Tensor& out) = nullptr;
  // The four kernels of rounded_attention.h, only for heads for which RoundsAttention is true. The
  // rounding kernels always succeed, because a GPU has no other implementation. `averaged` has the
  // keys or values whose mean the kernel subtracts.
  void (*round_queries)(const at::Tensor& query, const RoundedHeads& out) = nullptr;
  void (*round_keys)(const at::Tensor& key, const at::Tensor& averaged,
                     const RoundedHeads& out) = nullptr;
  void (*round_values)(const at::Tensor& value, const at::Tensor& averaged,
                       const RoundedValues& out) = nullptr;
  bool (*rounded_attention)(const RoundedHeads& query, const RoundedHeads& key,
                            const RoundedValues& value, at::Tensor& out) = nullptr;

  // Returns ten times the major plus the minor number of a GPU's compute capability, for example
  // 90.
  int (*compute_capability)(int device) = nullptr;
};

CudaOps& GetCudaOps();

}  // namespace wan
