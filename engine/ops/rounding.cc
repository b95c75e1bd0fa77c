#include "engine/ops/rounding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <vector>

#include "engine/ops/cuda_ops.h"

namespace wan {

at::Tensor RoundedRows::ToFloat() const { return codes.to(at::kFloat) * scales.unsqueeze(1); }

RoundedRows RoundedIn(const at::Tensor& memory, int64_t columns) {
  return {memory.view(at::kFloat8_e4m3fn).narrow(1, 0, columns),
          at::empty({memory.size(0)}, memory.options().dtype(at::kFloat))};
}

RoundedRows MakeRounded(int64_t rows, int64_t columns, at::Device device) {
  const at::TensorOptions options(device);
  return {at::empty({rows, columns}, options.dtype(at::kFloat8_e4m3fn)),
          at::empty({rows}, options.dtype(at::kFloat))};
}

void RoundRows(const at::Tensor& x, const RoundedRows& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::round_rows", (std::vector<c10::IValue>{x}));
  if (x.is_cuda()) {
    const auto kernel = GetCudaOps().round_rows;
    if (kernel != nullptr && kernel(x, out)) return;
  }
  RoundRowsReference(x, out);
}

void RoundRowsReference(const at::Tensor& x, const RoundedRows& out) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor largest = wide.abs().amax(1);
  const at::Tensor inverse =
      at::where(largest == 0, at::zeros_like(largest), kLargestE4m3 / largest);
  // Values beyond the range would become NaN.
  const at::Tensor scaled =
      (wide * inverse.unsqueeze(1)).clamp(-kLargestE4m3, kLargestE4m3).to(at::kFloat8_e4m3fn);
  out.scales.copy_(largest / kLargestE4m3);
  out.codes.copy_(scaled);
}

}  // namespace wan
