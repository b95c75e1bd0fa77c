// RoundedLinear (rounded_linear.h) in bf16 on compute capability 9.0.
//
// A cluster of two blocks works on 192 rows and 256 columns of the output at a time, and handles
// several such tiles. In each block one thread loads 128 values of the depth at a time by TMA: half
// of the rows, which both blocks get, and the block's own 128 columns. Three warp groups multiply
// 64 rows each. The groups are not in step: one writes its results while others still multiply, and
// the loads of the next tile go on meanwhile.
//
// The tensor cores keep about 14 bits of a sum of e4m3 products, which loses a fifth of a sum whose
// terms have one sign. So every 256 values of the depth the sums are added to sums in fp32.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/rounded_products_sm90.cuh"
#include "engine/ops/sm90.cuh"
#include "engine/ops/tensor_map.h"

namespace wan {
namespace {

using namespace sm90;

constexpr int kWarpGroup = 128;
constexpr int kGroups = 3;  // number of warp groups that multiply
constexpr int kGroupRows = 64;
constexpr int kThreads = (1 + kGroups) * kWarpGroup;
constexpr int kClusterBlocks = 2;
constexpr int kRows = kGroups * kGroupRows;
constexpr int kColumns = 128;  // number of columns per block
constexpr int kClusterColumns = kClusterBlocks * kColumns;
constexpr int kDepth = 128;  // bytes per row of a stage; TMA swizzles rows of 128 bytes
constexpr int kStages = 4;
constexpr int kPromoted = 2;  // number of stages that the tensor cores sum up
constexpr int kSums = kColumns / 2;
// Number of rows of output that clusters finish together, column after column, so that their inputs
// stay in the L2 cache.
constexpr int kBandRows = 3072;

constexpr uint32_t kRowBytes = kRows * kDepth;
constexpr uint32_t kColumnBytes = kColumns * kDepth;
constexpr uint32_t kStageBytes = kRowBytes + kColumnBytes;
constexpr int kBoxColumns = 64;  // number of bf16 values in 128 bytes
constexpr int kBoxRows = 16;     // number of rows per warp
constexpr uint32_t kBoxBytes = kBoxRows * kBoxColumns * 2;
constexpr int kBoxes = kColumns / kBoxColumns;
// Layout of shared memory: stages, two boxes of output per warp, the columns' scales and bias,
// barriers.
constexpr uint32_t kStoreAt = kStages * kStageBytes;
constexpr uint32_t kScalesAt = kStoreAt + kGroups * 4 * 2 * kBoxBytes;
constexpr uint32_t kBarriersAt = kScalesAt + 2 * kColumns * sizeof(float);
constexpr uint32_t kSwizzleAlignment = 1024;
constexpr uint32_t kSharedBytes = kBarriersAt + (2 * kStages + 1) * 8 + kSwizzleAlignment;

// Registers per thread: 128 at launch, 32 + 3 * 160 <= 4 * 128.
#define WAN_LOADER_REGISTERS "32"
#define WAN_GROUP_REGISTERS "160"

struct Problem {
  CUtensorMap x, weight, out;
  const float* row_scales;
  const float* column_scales;
  const float* bias;
  int rows;
  int depths;                          // number of stages that cover the depth
  int row_tiles, column_tiles, tiles;  // numbers of the clusters' tiles
  int band;                            // number of row tiles in a band
};

struct Tile {
  int row, column;
};

[[maybe_unused]] __device__ __forceinline__ Tile Locate(const Problem& problem, int tile,
                                                        int rank) {
  const int in_band = problem.band * problem.column_tiles;
  const int band = tile / in_band;
  const int first = band * problem.band;
  const int rows = min(problem.band, problem.row_tiles - first);
  const int rest = tile - band * in_band;
  const int column = rest / rows;
  return {(first + rest - column * rows) * kRows, column * kClusterColumns + rank * kColumns};
}

struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void Next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct SharedMemory {
  uint32_t base;
  __device__ __forceinline__ uint32_t Rows(int stage) const { return base + stage * kStageBytes; }
  __device__ __forceinline__ uint32_t Columns(int stage) const { return Rows(stage) + kRowBytes; }
  __device__ __forceinline__ uint32_t Full(int stage) const {
    return base + kBarriersAt + 8 * stage;
  }
  __device__ __forceinline__ uint32_t Empty(int stage) const { return Full(kStages + stage); }
  __device__ __forceinline__ uint32_t ScalesFull() const { return Full(2 * kStages); }
};

[[maybe_unused]] __device__ __forceinline__ void LoadTiles(const Problem& problem,
                                                           const SharedMemory& shared, int rank,
                                                           int first, int step) {
  constexpr int kPart = kRows / kClusterBlocks;
  Ring ring;
  for (int tile = first; tile < problem.tiles; tile += step) {
    const Tile at = Locate(problem, tile, rank);
#pragma unroll 1
    for (int k = 0; k < problem.depths; ++k) {
      const uint32_t full = shared.Full(ring.stage);
      BarrierWait(shared.Empty(ring.stage), ring.parity ^ 1);
      BarrierExpect(full, kStageBytes);
      LoadBox2InCluster(shared.Rows(ring.stage) + rank * kPart * kDepth, &problem.x, full,
                        k * kDepth, at.row + rank * kPart, (1 << kClusterBlocks) - 1);
      LoadBox2(shared.Columns(ring.stage), &problem.weight, full, k * kDepth, at.column);
      ring.Next();
      // Every warp has reached this tile by now, and has finished with the scales of the last tile.
      if (k == kStages) {
        constexpr uint32_t kBytes = kColumns * sizeof(float);
        BarrierExpect(shared.ScalesFull(), 2 * kBytes);
        LoadBytes(shared.base + kScalesAt, problem.column_scales + at.column, kBytes,
                  shared.ScalesFull());
        LoadBytes(shared.base + kScalesAt + kBytes, problem.bias + at.column, kBytes,
                  shared.ScalesFull());
      }
    }
  }
}

// The GELU with tanh, to about 5e-4 of its result.
[[maybe_unused]] __device__ __forceinline__ float Gelu(float x) {
  float t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * (0.7978845608f + 0.0356774081f * x * x)));
  return 0.5f * x + 0.5f * x * t;
}

[[maybe_unused]] __device__ __forceinline__ uint32_t PackPair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

[[maybe_unused]] __device__ __forceinline__ float2 SharedPair(uint32_t address) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(address));
  return pair;
}

// Multiplies this warp group's rows of one tile. On return, all stages of the tile are released.
[[maybe_unused]] __device__ __forceinline__ void MultiplyTile(
    const Problem& problem, const SharedMemory& shared, uint64_t row_matrix, uint64_t column_matrix,
    uint32_t to_block, Ring& ring, float (&sums)[kSums]) {
  const int lane = threadIdx.x % 32;
  const auto release = [&](int stage) {
    if (lane < kClusterBlocks) BarrierArriveInCluster(shared.Empty(stage) + to_block);
  };
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] = 0;
#pragma unroll 1
  for (int k = 0; k < problem.depths; k += kPromoted) {
    float part[kSums];
    int last = 0;
#pragma unroll
    for (int p = 0; p < kPromoted; ++p) {
      BarrierWait(shared.Full(ring.stage), ring.parity);
      ProductFence();
#pragma unroll
      for (int i = 0; i < kDepth / 32; ++i) {
        const uint64_t at = ring.stage * MatrixStep(kStageBytes) + MatrixStep(32 * i);
        Product64x128(part, row_matrix + at, column_matrix + at, i > 0 || p > 0);
      }
      ProductCommit();
      if (p > 0) {
        ProductWait<1>();
        release(last);
      }
      last = ring.stage;
      ring.Next();
    }
    ProductWait<0>();
#pragma unroll
    for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(part[i])::"memory");
    release(last);
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += part[i];
  }
}

template <Activation kActivation>
__device__ __forceinline__ void MultiplyTiles(const Problem& problem, const SharedMemory& shared,
                                              int rank, int first, int step, int group) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 % 4;
  const uint32_t store = shared.base + kStoreAt + (group * 4 + warp) * 2 * kBoxBytes;
  const uint64_t row_matrix = MatrixAt(shared.Rows(0) + group * kGroupRows * kDepth, 0);
  const uint64_t column_matrix = MatrixAt(shared.Columns(0), 0);
  // Lane 0 of a warp arrives in block 0 of the cluster, lane 1 in block 1.
  const uint32_t to_block = ClusterAddress(shared.base, lane % kClusterBlocks) - shared.base;
  Ring ring;
  uint32_t scales_parity = 0;
  float sums[kSums];
  for (int tile = first; tile < problem.tiles; tile += step) {
    const Tile at = Locate(problem, tile, rank);
    const int warp_row = at.row + group * kGroupRows + warp * kBoxRows;
    float row_scales[2];
#pragma unroll
    for (int low = 0; low < 2; ++low) {
      const int row = warp_row + 8 * low + lane / 4;
      row_scales[low] = row < problem.rows ? __ldg(problem.row_scales + row) : 0.0f;
    }
    MultiplyTile(problem, shared, row_matrix, column_matrix, to_block, ring, sums);

    BarrierWait(shared.ScalesFull(), scales_parity);
    scales_parity ^= 1;
    const uint32_t pair = shared.base + kScalesAt + lane % 4 * 2 * sizeof(float);
    const int line = lane % 16;
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      const uint32_t to = store + box % 2 * kBoxBytes;
      if (lane == 0) StoreWaitRead<1>();
      __syncwarp();
#pragma unroll
      for (int chunk = 0; chunk < 8; chunk += 2) {  // a group of eight columns
        uint32_t v[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int column = box * kBoxColumns + (chunk + half) * 8;
          const float2 scale = SharedPair(pair + column * sizeof(float));
          const float2 bias = SharedPair(pair + (kColumns + column) * sizeof(float));
          const float* const d = sums + column / 2;
#pragma unroll
          for (int low = 0; low < 2; ++low) {
            float x = d[2 * low] * (row_scales[low] * scale.x) + bias.x;
            float y = d[2 * low + 1] * (row_scales[low] * scale.y) + bias.y;
            if constexpr (kActivation == Activation::kGeluTanh) {
              x = Gelu(x);
              y = Gelu(y);
            }
            v[2 * half + low] = PackPair(x, y);
          }
        }
        StoreMatrices(to + line * 128 + ((chunk + lane / 16) ^ (line % 8)) * 16, v);
      }
      FenceForCopies();
      __syncwarp();
      if (lane == 0) StoreBox2(&problem.out, to, at.column + box * kBoxColumns, warp_row);
    }
  }
  if (lane == 0) StoreWaitAll();
  __syncwarp();
}

template <Activation kActivation>
__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kClusterBlocks, 1, 1)
    RoundedLinearKernel(const __grid_constant__ Problem problem) {
  // On other architectures the kernel is empty.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ uint8_t memory[];
  const SharedMemory shared{(SharedAddress(memory) + kSwizzleAlignment - 1) &
                            ~(kSwizzleAlignment - 1)};
  const int rank = blockIdx.x % kClusterBlocks;
  const int first = blockIdx.x / kClusterBlocks;
  const int step = gridDim.x / kClusterBlocks;
  const int group = __shfl_sync(~0u, threadIdx.x / kWarpGroup, 0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      BarrierInit(shared.Full(i), 1);
      BarrierInit(shared.Empty(i), 4 * kGroups * kClusterBlocks);
    }
    BarrierInit(shared.ScalesFull(), 1);
    BarrierInitFence();
  }
  ClusterSync();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 " WAN_LOADER_REGISTERS ";");
    if (threadIdx.x == 0) LoadTiles(problem, shared, rank, first, step);
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 " WAN_GROUP_REGISTERS ";");
    MultiplyTiles<kActivation>(problem, shared, rank, first, step, group - 1);
  }
  // Wait: the other block may still write to this block's shared memory and arrive at its barriers.
  ClusterSync();
#endif
}

// Makes a TMA descriptor of a matrix for boxes of 128 bytes by `box_rows` rows; rows beyond the
// matrix read as zeros and are not written. Returns false if the driver refuses.
bool Describe(const at::Tensor& matrix, int box_rows, CUtensorMap& map) {
  static const EncodeTensorMap encode = FindEncodeTensorMap();
  const bool bf16 = matrix.scalar_type() == at::kBFloat16;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(matrix.size(1)),
                               static_cast<cuuint64_t>(matrix.size(0))};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(matrix.stride(0) * matrix.element_size())};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(bf16 ? kBoxColumns : kDepth),
                             static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t ones[2] = {1, 1};
  return encode != nullptr &&
         encode(&map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8, 2,
                const_cast<void*>(matrix.const_data_ptr()), sizes, strides, box, ones,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Whether TMA can read and write the matrix.
bool IsMatrix(const at::Tensor& t) {
  return t.dim() == 2 && t.is_cuda() && t.stride(1) == 1 &&
         t.stride(0) * t.element_size() % 16 == 0 &&
         reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0 &&
         t.size(0) < std::numeric_limits<int>::max() / 2;
}

bool RoundedLinearCuda(const RoundedRows& x, const RoundedRows& weight, const at::Tensor& bias,
                       Activation activation, at::Tensor& out) {
  const int64_t rows = out.size(0);
  const int64_t columns = out.size(1);
  const int64_t depth = x.codes.size(1);
  const bool supported = IsMatrix(x.codes) && IsMatrix(weight.codes) && IsMatrix(out) &&
                         out.scalar_type() == at::kBFloat16 && columns % kClusterColumns == 0 &&
                         depth % (kPromoted * kDepth) == 0 && depth / kDepth > kStages &&
                         x.scales.is_contiguous() && weight.scales.is_contiguous() &&
                         GetCudaOps().compute_capability(out.get_device()) == 90;
  Problem problem;
  if (!supported || !Describe(x.codes, kRows / kClusterBlocks, problem.x) ||
      !Describe(weight.codes, kColumns, problem.weight) || !Describe(out, kBoxRows, problem.out)) {
    return false;
  }
  if (rows == 0) return true;
  const c10::cuda::CUDAGuard guard(out.device());
  const at::Tensor wide_bias = bias.to(at::kFloat).contiguous();
  problem.row_scales = x.scales.const_data_ptr<float>();
  problem.column_scales = weight.scales.const_data_ptr<float>();
  problem.bias = wide_bias.const_data_ptr<float>();
  problem.rows = static_cast<int>(rows);
  problem.depths = static_cast<int>(depth / kDepth);
  problem.row_tiles = static_cast<int>((rows + kRows - 1) / kRows);
  problem.column_tiles = static_cast<int>(columns / kClusterColumns);
  problem.tiles = problem.row_tiles * problem.column_tiles;
  problem.band = kBandRows / kRows;
  int processors = 0;
  C10_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, out.get_device()));
  const auto kernel = activation == Activation::kGeluTanh
                          ? &RoundedLinearKernel<Activation::kGeluTanh>
                          : &RoundedLinearKernel<Activation::kNone>;
  C10_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  const int clusters = std::min(processors / kClusterBlocks, problem.tiles);
  kernel<<<clusters * kClusterBlocks, kThreads, kSharedBytes, c10::cuda::getCurrentCUDAStream()>>>(
      problem);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return true;
}

const bool kRegistered = (GetCudaOps().rounded_linear = &RoundedLinearCuda, true);

}  // namespace
}  // namespace wan
