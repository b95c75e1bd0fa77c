#include "engine/ops/channel_rms_norm.h"

#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/record_function.h>

#include <cmath>
#include <vector>

#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

constexpr double kSmallestLength = 1e-12;

void Normalize(const at::Tensor& x, const at::Tensor& gamma, at::Tensor& out) {
  const at::Tensor length = at::linalg_vector_norm(x, 2, /*dim=*/1, /*keepdim=*/true, at::kFloat)
                                .clamp_min_(kSmallestLength);
  std::vector<int64_t> per_channel(x.dim(), 1);
  per_channel[1] = x.size(1);
  at::div_out(out, x, length);
  out.mul_(gamma.to(at::kFloat).mul(std::sqrt(static_cast<double>(x.size(1)))).view(per_channel));
}

}  // namespace

at::Tensor ChannelRmsNorm(const at::Tensor& x, const at::Tensor& gamma) {
  at::Tensor out = at::empty_like(x);
  Normalize(x, gamma, out);
  return out;
}

void ChannelRmsNormSilu(const at::Tensor& x, const at::Tensor& gamma, at::Tensor out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::channel_rms_norm_silu", (std::vector<c10::IValue>{x}));
  if (x.is_cuda()) {
    const auto kernel = GetVaeCudaOps().channel_rms_norm_silu;
    if (kernel != nullptr && kernel(x, gamma, out)) return;
  }
  ChannelRmsNormSiluReference(x, gamma, out);
}

void ChannelRmsNormSiluReference(const at::Tensor& x, const at::Tensor& gamma, at::Tensor out) {
  Normalize(x, gamma, out);
  at::silu_(out);
}

}  // namespace wan
