// The kernel of layer_norm_modulate.h and gate_residual_norm.h: each block normalises one row.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <type_traits>

#include "engine/ops/rounding.cuh"
#include "engine/ops/row_kernel.cuh"

namespace wan {

struct LayerNormArguments {
  float* x = nullptr;  // updated in place if the kernel gets a y
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  int64_t out_stride = 0;
  int64_t dim = 0;
  float eps = 0;
  RowTable gate;  // `data` is nullptr if there is no gate
  RowTable scale;
  RowTable shift;
  const int32_t* index = nullptr;  // nullptr if all tables have one row
  float* row_scales = nullptr;     // the scales of a rounded output
};

// Y is the dtype of y, which is added to x before the norm; void means that there is no y. `y` and
// `out` may be the same memory: a thread reads its part of a row before it writes it.
template <typename Y, typename Out>
__global__ void __launch_bounds__(kMaxThreads)
    LayerNormKernel(LayerNormArguments args, const Y* y, Out* out) {
  __shared__ float shared_sum[1][kWarp];
  __shared__ float shared_squares[1][kWarp];
  __shared__ float shared_largest[kWarp];
  constexpr bool kRounds = std::is_same_v<Out, __nv_fp8_e4m3>;

  const int64_t row = blockIdx.x;
  const int column = threadIdx.x * kVector;
  const bool active = column < args.dim;
  const int64_t i = args.index != nullptr ? args.index[row] : 0;

  Vector x = {};
  if (active) {
    float* const x_row = args.x + row * args.x_stride;
    x = LoadVector(x_row + column);
    if constexpr (!std::is_void_v<Y>) {
      Vector added = LoadVector(y + row * args.y_stride + column);
      if (args.gate.data != nullptr) {
        const Vector gate = LoadRowOf(args.gate, i, column);
#pragma unroll
        for (int k = 0; k < kVector; ++k) added.values[k] *= gate.values[k];
      }
#pragma unroll
      for (int k = 0; k < kVector; ++k) x.values[k] += added.values[k];
      StoreVector(x_row + column, x);
    }
  }

  float sum[1] = {0};
#pragma unroll
  for (int k = 0; k < kVector; ++k) sum[0] += x.values[k];
  BlockSum(sum, shared_sum);
  const float mean = sum[0] / static_cast<float>(args.dim);

  // The variance is computed from deviations. A sum of squares would lose precision, because a
  // residual stream has means far from 0.
  float squares[1] = {0};
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    const float centered = active ? x.values[k] - mean : 0.0f;
    squares[0] += centered * centered;
  }
  BlockSum(squares, shared_squares);
  const float inverse = rsqrtf(squares[0] / static_cast<float>(args.dim) + args.eps);

  if (!kRounds && !active) return;
  Vector result[1] = {};
  if (active) {
    const Vector scale = LoadRowOf(args.scale, i, column);
    const Vector shift = LoadRowOf(args.shift, i, column);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      result[0].values[k] = (x.values[k] - mean) * inverse * scale.values[k] + shift.values[k];
    }
  }
  if constexpr (kRounds) {
    StoreRounded(result, static_cast<int>(args.dim), shared_largest, out + row * args.out_stride,
                 args.row_scales + row);
  } else {
    StoreVector(out + row * args.out_stride + column, result[0]);
  }
}

// Whether x, the tables and out meet the requirements of both operators.
inline bool SupportsLayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                              const at::Tensor& index) {
  const int64_t dim = x.size(1);
  return HasVectorRows(x) && x.scalar_type() == at::kFloat && RowFitsBlock(dim) &&
         IsRowTable(scale, index, dim) && IsRowTable(shift, index, dim);
}

inline bool SupportsLayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                              const at::Tensor& index, const at::Tensor& out) {
  return SupportsLayerNorm(x, scale, shift, index) && HasVectorRows(out) &&
         out.sizes() == x.sizes();
}

// Returns whether the kernel can add `y`, multiplied by `gate`, to x; `gate` may be undefined.
inline bool SupportsResidual(const at::Tensor& x, const at::Tensor& y, const at::Tensor& gate,
                             const at::Tensor& index) {
  return HasVectorRows(y) && y.sizes() == x.sizes() &&
         (!gate.defined() || IsRowTable(gate, index, x.size(1)));
}

inline LayerNormArguments MakeLayerNormArguments(const at::Tensor& x, const at::Tensor& scale,
                                                 const at::Tensor& shift, const at::Tensor& index,
                                                 double eps, const at::Tensor& out) {
  LayerNormArguments args;
  args.x = const_cast<float*>(x.const_data_ptr<float>());
  args.x_stride = x.stride(0);
  args.out_stride = out.stride(0);
  args.dim = x.size(1);
  args.eps = static_cast<float>(eps);
  args.scale = ToRowTable(scale);
  args.shift = ToRowTable(shift);
  args.index = index.defined() ? index.const_data_ptr<int32_t>() : nullptr;
  return args;
}

template <typename Y, typename Out>
void LaunchLayerNorm(const LayerNormArguments& args, int64_t rows, const void* y, void* out) {
  if (rows == 0) return;
  LayerNormKernel<Y, Out><<<static_cast<unsigned>(rows), ThreadsForRow(args.dim), 0,
                            c10::cuda::getCurrentCUDAStream()>>>(args, static_cast<const Y*>(y),
                                                                 static_cast<Out*>(out));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace wan
