#include "engine/ops/rounding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <vector>

#include "engine/ops/cuda_ops.h"

namespace wan {

RoundedRows RoundedRows::Rows(int64_t first, int64_t count) const {
  return {codes.narrow(0, first, count), scales.narrow(0, first, count)};
}

RoundedRows RoundedRows::Select(const at::Tensor& index) const {
  // On some devices LibTorch cannot select rows of e4m3.
  return {codes.view(at::kByte).index_select(0, index).view(codes.scalar_type()),
          scales.index_select(0, index)};
}

at::Tensor RoundedRows::ToFloat() const { return codes.to(at::kFloat) * scales.unsqueeze(1); }

RoundedRows RoundedIn(const at::Tensor& memory, int64_t columns) {
  return {memory.view(at::kFloat8_e4m3fn).narrow(1, 0, columns),
          at::empty({memory.size(0)}, memory.options().dtype(at::kFloat))};
}

RoundedRows MakeRounded(int64_t rows, int64_t columns, at::Device device, at::ScalarType code) {
  const at::TensorOptions options(device);
  return {at::empty({rows, columns}, options.dtype(code)),
          at::empty({rows}, options.dtype(at::kFloat))};
}

void RoundRows(const at::Tensor& x, const RoundedRows& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::round_rows", (std::vector<c10::IValue>{x}));
  if (x.is_cuda() && out.codes.scalar_type() == at::kFloat8_e4m3fn) {
    const auto kernel = GetCudaOps().round_rows;
    if (kernel != nullptr && kernel(x, out)) return;
  }
  RoundRowsReference(x, out);
}

void RestoreRows(const RoundedRows& x, at::Tensor& out) {
  // A CPU multiplies in copies of the operands in fp32, so it takes few rows at a time.
  constexpr int64_t kRestoredOnCpu = int64_t{1} << 20;
  const int64_t rows = out.size(0);
  const int64_t step =
      out.is_cpu() ? std::max<int64_t>(kRestoredOnCpu / std::max<int64_t>(out.size(1), 1), 1)
                   : std::max<int64_t>(rows, 1);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const RoundedRows part = x.Rows(first, count);
    const at::Tensor values = out.narrow(0, first, count);
    values.copy_(part.codes);  // exact, because bf16 has all values of e4m3 and of int8
    values.mul_(part.scales.unsqueeze(1));
  }
}

void RoundRowsReference(const at::Tensor& x, const RoundedRows& out) {
  const bool whole = out.codes.scalar_type() == at::kChar;
  const double most = whole ? kLargestInt8 : kLargestE4m3;
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor largest = wide.abs().amax(1);
  const at::Tensor inverse = at::where(largest == 0, at::zeros_like(largest), most / largest);
  // Values beyond the range of e4m3 would become NaN.
  at::Tensor scaled = (wide * inverse.unsqueeze(1)).clamp(-most, most);
  if (whole) scaled.round_();
  // Computes all codes before copying them, because `out` may overwrite x.
  scaled = scaled.to(out.codes.scalar_type());
  out.scales.copy_(largest / most);
  out.codes.copy_(scaled);
}

}  // namespace wan
