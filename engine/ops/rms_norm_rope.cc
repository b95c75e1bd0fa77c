#include "engine/ops/rms_norm_rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/stack.h>
#include <ATen/record_function.h>

#include <vector>

#include "engine/ops/cuda_ops.h"

namespace wan {

void RmsNormRope(at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& rotary) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::rms_norm_rope", (std::vector<c10::IValue>{x, weight}));
  if (x.is_cuda()) {
    const auto kernel = GetCudaOps().rms_norm_rope;
    if (kernel != nullptr && kernel(x, weight, eps, rotary)) return;
  }
  RmsNormRopeReference(x, weight, eps, rotary);
}

void RmsNormRopeReference(at::Tensor& x, const at::Tensor& weight, double eps,
                          const at::Tensor& rotary) {
  const at::Tensor parts = x.unflatten(1, weight.sizes());
  const at::Tensor wide = parts.to(at::kFloat);
  at::Tensor norm = wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps) * weight;
  if (rotary.defined()) {
    const int64_t tokens = rotary.size(0);
    const int64_t pairs_per_head = rotary.size(1) / 2;
    const at::Tensor cos = rotary.narrow(1, 0, pairs_per_head).unsqueeze(1);
    const at::Tensor sin = rotary.narrow(1, pairs_per_head, pairs_per_head).unsqueeze(1);
    const at::Tensor pairs = norm.view({x.size(0) / tokens, tokens, -1, pairs_per_head, 2});
    const at::Tensor even = pairs.select(-1, 0);
    const at::Tensor odd = pairs.select(-1, 1);
    norm = at::stack({even * cos - odd * sin, even * sin + odd * cos}, -1).view_as(parts);
  }
  parts.copy_(norm);
}

}  // namespace wan
