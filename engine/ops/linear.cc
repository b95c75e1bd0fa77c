#include "engine/ops/linear.h"

#include <ATen/ops/_addmm_activation.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/gelu.h>

namespace wan {

void Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
            at::Tensor& out) {
  at::addmm_out(out, bias, x, weight.t());
}

void LinearGelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                at::Tensor& out) {
  // On CUDA this function applies the GELU with tanh, in cuBLASLt's epilogue or after the product.
  // On a CPU it would apply the GELU with erf.
  if (x.is_cuda() && x.scalar_type() == at::kBFloat16) {
    at::_addmm_activation_out(out, bias, x, weight.t(), 1, 1, /*use_gelu=*/true);
    return;
  }
  Linear(x, weight, bias, out);
  at::gelu_(out, "tanh");
}

}  // namespace wan
