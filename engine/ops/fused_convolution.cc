#include "engine/ops/fused_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include "engine/ops/convolution.h"
#include "engine/ops/duplicate_up_3d.h"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

constexpr int64_t kTime = 2;

// Turns [..., 3] into the sums of neighbours along `dim` that meet the same input pixel, for the
// first and for the second row (or column) of a cell.
std::vector<at::Tensor> PairsAlong(const at::Tensor& kernel, int64_t dim) {
  const auto tap = [&](int64_t i) { return kernel.narrow(dim, i, 1); };
  return {at::cat({tap(0), tap(1) + tap(2)}, dim), at::cat({tap(0) + tap(1), tap(2)}, dim)};
}

}  // namespace

bool HasFusedConvolution(const at::Tensor& weight, Spread spread, bool allow_tf32) {
  if (!weight.is_cuda()) return false;
  const auto supports = GetVaeCudaOps().supports_fused_convolution;
  return supports != nullptr && supports(weight, spread, allow_tf32);
}

bool HasFusedConvolutions(at::Device device) {
  if (!device.is_cuda()) return false;
  constexpr int64_t kChannels = 96;
  const at::Tensor weight =
      at::empty({kChannels, kChannels, 1, 1, 1}, at::TensorOptions(device).dtype(at::kHalf));
  return HasFusedConvolution(weight, Spread::kNone, /*allow_tf32=*/false);
}

void ConvolveFused(const FusedConvolution& convolution, at::Tensor& out) {
  RECORD_USER_SCOPE_WITH_INPUTS("wan::convolve_fused",
                                (std::vector<c10::IValue>{out, convolution.weight}));
  const auto kernel = GetVaeCudaOps().fused_convolution;
  TORCH_CHECK(kernel != nullptr && kernel(convolution, out), "no kernel convolves ",
              convolution.weight.sizes(), " over ", convolution.frames.front().sizes());
}

at::Tensor ConvolveFusedReference(const FusedConvolution& convolution) {
  const at::Tensor& weight = convolution.weight;
  const int64_t phases = convolution.spread == Spread::kNone     ? 1
                         : convolution.spread == Spread::kFrames ? 2
                                                                 : 4;
  const int64_t channels = weight.size(0) / phases;
  const at::Tensor x = at::constant_pad_nd(at::cat(convolution.frames, kTime),
                                           {0, 0, 0, 0, convolution.leading_zeros, 0});
  const int64_t height = x.size(3);
  const int64_t width = x.size(4);
  std::vector<at::Tensor> parts;
  for (int64_t phase = 0; phase < phases; ++phase) {
    const at::Tensor kernel = weight.narrow(0, phase * channels, channels);
    at::Tensor padded = x;
    if (convolution.spread == Spread::kPixels) {
      const int64_t row = phase / 2;
      const int64_t column = phase % 2;
      padded = at::constant_pad_nd(x, {1 - column, column, 1 - row, row});
    } else {
      const int64_t rows = weight.size(3) / 2;
      const int64_t columns = weight.size(4) / 2;
      padded = at::constant_pad_nd(x, {columns, columns, rows, rows});
    }
    parts.push_back(at::conv3d(padded, kernel, convolution.bias));
  }
  at::Tensor y = parts.front();
  const int64_t frames = y.size(kTime);
  if (convolution.spread == Spread::kFrames) {
    y = at::stack(parts, /*dim=*/3).reshape({1, channels, 2 * frames, height, width});
  } else if (convolution.spread == Spread::kPixels) {
    y = at::stack(parts, /*dim=*/-1)
            .view({channels, frames, height, width, 2, 2})
            .permute({0, 1, 2, 4, 3, 5})
            .reshape({1, channels, frames, 2 * height, 2 * width});
  }
  y = y.contiguous(ConvolutionLayout(y.dim()));
  if (!convolution.addend.defined()) return y;
  if (convolution.spread == Spread::kPixels) {
    AddDuplicateUp3d(y, convolution.addend, convolution.addend_time_factor, /*space_factor=*/2);
    return y;
  }
  return y.add_(convolution.addend);
}

at::Tensor KernelOverEnlargement(const at::Tensor& weight) {
  std::vector<at::Tensor> cell;
  for (const at::Tensor& rows : PairsAlong(weight.to(at::kFloat), /*dim=*/2)) {
    for (const at::Tensor& both : PairsAlong(rows, /*dim=*/3)) cell.push_back(both);
  }
  return at::cat(cell, /*dim=*/0)
      .unsqueeze(kTime)
      .to(weight.scalar_type())
      .contiguous(ConvolutionLayout(/*dim=*/5));
}

}  // namespace wan
