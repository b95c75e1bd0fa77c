// The code that the kernels of attention (attention.h, rounded_attention.h) share, for heads of 128
// channels on compute capability 9.0. Each kernel has a form, a type that defines the tiles and how
// a warp group computes them: in bf16 (attention_sm90.cu) or in 8-bit integers
// (rounded_attention_sm90.cu).
//
// A cluster of two blocks works on 256 queries of one head and passes over all keys and values, a
// tile at a time, keeping a running softmax. Each block loads half of every tile for both blocks.
// In a block one thread loads by TMA, and two warp groups of 64 queries each compute. The warp
// groups take turns: while one uses the tensor cores, the other computes exponentials. In its turn
// a group computes the scores of one tile and the outputs of the previous tile. Blocks are
// persistent. Neighbouring clusters work on the same head, so they find its keys and values in the
// L2 cache.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/ops/sm90.cuh"
#include "engine/ops/softmax_sm90.cuh"
#include "engine/ops/tensor_map.h"

namespace wan::sm90 {

constexpr int kHeadDim = 128;
constexpr int kClusterBlocks = 2;
constexpr int kWarpGroup = 128;
constexpr uint16_t kAllBlocks = (1 << kClusterBlocks) - 1;  // one bit for each block of a cluster
constexpr int kGroups = 2;                                  // warp groups that compute
constexpr int kGroupRows = 64;
constexpr int kBlockRows = kGroups * kGroupRows;
constexpr int kClusterRows = kClusterBlocks * kBlockRows;
constexpr int kThreads = (1 + kGroups) * kWarpGroup;

// TMA swizzles rows of at most 128 bytes: 64 columns of bf16 or 128 of 8 bits.
constexpr int kBoxColumns = 64;
constexpr uint32_t kRowBytes = kBoxColumns * 2;
constexpr uint32_t kQueryBox = kGroupRows * kRowBytes;
constexpr uint32_t kSwizzleAlignment = 1024;

template <int kStages>
struct Barriers {
  uint64_t query_full[kGroups], query_empty[kGroups];
  uint64_t key_full[kStages], key_empty[kStages];
  uint64_t value_full[kStages], value_empty[kStages];
};

// The layout of a form's shared memory: queries, keys, values and barriers. kBoxes: boxes in a row
// of queries. kStages: tiles of keys in shared memory, and also the tiles of values. A form derives
// from AttentionLayout and adds LoadKeys, LoadValues and Compute (see attention_sm90.cu).
template <int kKeysOfTile, int kBoxesOfRow, uint32_t kBytesOfKeys, uint32_t kBytesOfValues,
          int kStagesOfTiles>
struct AttentionLayout {
  static constexpr int kKeys = kKeysOfTile;
  static constexpr int kBoxes = kBoxesOfRow;
  static constexpr int kStages = kStagesOfTiles;
  static constexpr uint32_t kQueryBytes = kBoxes * kQueryBox;  // bytes of the queries of one warp
                                                               // group
  static constexpr uint32_t kKeyBytes = kBytesOfKeys;
  static constexpr uint32_t kValueBytes = kBytesOfValues;
  static constexpr uint32_t kKeysAt = kGroups * kQueryBytes;
  static constexpr uint32_t kValuesAt = kKeysAt + kStages * kKeyBytes;
  static constexpr uint32_t kBarriersAt = kValuesAt + kStages * kValueBytes;
  static constexpr uint32_t kSharedBytes =
      kBarriersAt + sizeof(Barriers<kStages>) + kSwizzleAlignment;
};

// Registers per thread of the loading warps and of the computing warps. A thread has 168 registers
// at launch: 24 + 2 * 240 <= 3 * 168.
#define WAN_LOADER_REGISTERS "24"
#define WAN_GROUP_REGISTERS "240"

struct Problem {
  CUtensorMap query, key, value;
  __nv_bfloat16* out;
  int64_t out_batch_stride, out_row_stride, out_head_stride;
  int queries, keys, heads;
  int row_tiles;  // number of tiles of kClusterRows queries per head
  int tiles;      // number of tiles over all heads and batch entries
  int key_tiles;
  float scale;  // what scores are multiplied by, times log2(e)
  // Used only by the kernel in integers. The shapes are [batch, head, query], [batch, head, tile of
  // keys], and twice [batch, head, channel].
  const float* query_scales;
  const float* key_scales;
  const float* value_scales;
  const float* value_means;
  int64_t query_scale_stride;  // elements between two heads
};

struct Tile {
  int row, head, batch;  // `row` is the block's first query
};

__device__ __forceinline__ Tile Locate(const Problem& problem, int tile, int rank) {
  const int group = tile / problem.row_tiles;
  const int batch = group / problem.heads;
  return {(tile - group * problem.row_tiles) * kClusterRows + rank * kBlockRows,
          group - batch * problem.heads, batch};
}

// The stage that the next tile uses, and the parity of that stage's phase.
template <int kStages>
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

template <typename Form>
struct SharedMemory {
  uint32_t base;
  __device__ __forceinline__ uint32_t Queries(int group) const {
    return base + group * Form::kQueryBytes;
  }
  __device__ __forceinline__ uint32_t Keys() const { return base + Form::kKeysAt; }
  __device__ __forceinline__ uint32_t Values() const { return base + Form::kValuesAt; }
  __device__ __forceinline__ uint32_t Barrier(size_t first, int index) const {
    return base + Form::kBarriersAt + static_cast<uint32_t>(first) + 8 * index;
  }
};
#define WAN_BARRIER(name, index) shared.Barrier(offsetof(Barriers<Form::kStages>, name), index)

template <typename Form>
__device__ __forceinline__ void InitBarriers(const SharedMemory<Form>& shared) {
  constexpr int kWarps = kWarpGroup / 32;
  for (int i = 0; i < kGroups; ++i) {
    BarrierInit(WAN_BARRIER(query_full, i), 1);
    BarrierInit(WAN_BARRIER(query_empty, i), kWarps);
  }
  for (int i = 0; i < Form::kStages; ++i) {
    BarrierInit(WAN_BARRIER(key_full, i), 1);
    BarrierInit(WAN_BARRIER(value_full, i), 1);
    // A block's loads write to the shared memory of both blocks, so it waits until both are done
    // with the stage.
    BarrierInit(WAN_BARRIER(key_empty, i), kWarps * kGroups * kClusterBlocks);
    BarrierInit(WAN_BARRIER(value_empty, i), kWarps * kGroups * kClusterBlocks);
  }
  BarrierInitFence();
}

// The loop of the thread that loads a block's tiles.
template <typename Form>
__device__ __forceinline__ void LoadTiles(const Problem& problem, const SharedMemory<Form>& shared,
                                          int rank, int first, int step) {
  Ring<Form::kStages> key, value;
  uint32_t query_parity = 0;
  const auto load_keys = [&](int tile, const Tile& at) {
    const uint32_t full = WAN_BARRIER(key_full, key.stage);
    BarrierWait(WAN_BARRIER(key_empty, key.stage), key.parity ^ 1);
    BarrierExpect(full, Form::kKeyBytes);
    Form::LoadKeys(problem, shared.Keys() + key.stage * Form::kKeyBytes, full, tile, at, rank);
    key.Next();
  };
  const auto load_values = [&](int tile, const Tile& at) {
    const uint32_t full = WAN_BARRIER(value_full, value.stage);
    BarrierWait(WAN_BARRIER(value_empty, value.stage), value.parity ^ 1);
    BarrierExpect(full, Form::kValueBytes);
    Form::LoadValues(problem, shared.Values() + value.stage * Form::kValueBytes, full, tile, at,
                     rank);
    value.Next();
  };
  for (int tile = first; tile < problem.tiles; tile += step) {
    const Tile at = Locate(problem, tile, rank);
    // Loads tiles in the order of their use: from the last to the first, values one tile later than
    // keys.
#pragma unroll 1
    for (int i = problem.key_tiles - 1; i >= -1; --i) {
      if (i >= 0) load_keys(i, at);
      if (i < problem.key_tiles - 1) {
        load_values(i + 1, at);
        continue;
      }
#pragma unroll 1
      for (int g = 0; g < kGroups; ++g) {
        const uint32_t full = WAN_BARRIER(query_full, g);
        const uint32_t to = shared.Queries(g);
        const int row = at.row + g * kGroupRows;
        BarrierWait(WAN_BARRIER(query_empty, g), query_parity ^ 1);
        BarrierExpect(full, Form::kQueryBytes);
        LoadBox(to, &problem.query, full, 0, row, at.head, at.batch);
        if constexpr (Form::kBoxes == 2) {
          LoadBox(to + kQueryBox, &problem.query, full, kBoxColumns, row, at.head, at.batch);
        }
      }
      query_parity ^= 1;
    }
  }
}

// Writes a warp group's 64 rows of the result, except rows beyond the last query. Four threads
// share a row; each holds pairs of its values. The four threads exchange values so that each can
// write 16 bytes at a time.
__device__ __forceinline__ void WriteRows(const Problem& problem, const Tile& at, int group,
                                          const float (&out)[kOutputs], float inverse0,
                                          float inverse1) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 % 4;
  const int quad = lane % 4;
  const int first_row = at.row + group * kGroupRows + warp * 16 + lane / 4;
  __nv_bfloat16* const to = problem.out + at.batch * problem.out_batch_stride +
                            at.head * problem.out_head_stride + first_row * problem.out_row_stride;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float inverse = half == 0 ? inverse0 : inverse1;
#pragma unroll
    for (int j = 0; j < kHeadDim / 32; ++j) {
      uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int i = 16 * j + 4 * k + 2 * half;
        v[k] = PackBf16(out[i] * inverse, out[i + 1] * inverse);
      }
      // Exchanges values between four threads in two steps, like the transposition of a four by
      // four matrix.
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        const uint32_t got = __shfl_xor_sync(~0u, quad & 1 ? v[k] : v[k + 1], 1);
        (quad & 1 ? v[k] : v[k + 1]) = got;
      }
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const uint32_t got = __shfl_xor_sync(~0u, quad & 2 ? v[k] : v[k + 2], 2);
        (quad & 2 ? v[k] : v[k + 2]) = got;
      }
      if (first_row + 8 * half < problem.queries) {
        *reinterpret_cast<uint4*>(to + 8 * half * problem.out_row_stride + 32 * j + 8 * quad) =
            make_uint4(v[0], v[1], v[2], v[3]);
      }
    }
  }
}

template <typename Form>
__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kClusterBlocks, 1, 1)
    AttentionKernel(const __grid_constant__ Problem problem) {
  // On architectures other than sm_90a the kernel is empty.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ uint8_t memory[];
  const SharedMemory<Form> shared{(SharedAddress(memory) + kSwizzleAlignment - 1) &
                                  ~(kSwizzleAlignment - 1)};
  const int rank = blockIdx.x % kClusterBlocks;
  const int first = blockIdx.x / kClusterBlocks;
  const int step = gridDim.x / kClusterBlocks;
  // The shuffle tells the compiler that `group` is the same in all threads of a warp.
  const int group = __shfl_sync(~0u, threadIdx.x / kWarpGroup, 0);
  if (threadIdx.x == 0) InitBarriers(shared);
  ClusterSync();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 " WAN_LOADER_REGISTERS ";");
    if (threadIdx.x == 0) LoadTiles(problem, shared, rank, first, step);
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 " WAN_GROUP_REGISTERS ";");
    Form::Compute(problem, shared, rank, first, step, group - 1);
  }
  // Wait: the other block may still write to this block's shared memory and arrive at its barriers.
  ClusterSync();
#endif
}

// Makes a TMA descriptor of [batch, rows, heads, 128], bf16 or int8, for boxes of `box_rows` rows
// of 128 bytes; rows beyond the tensor read as zeros. Returns false if the driver refuses, for
// example strides that are not multiples of 16 bytes.
inline bool DescribeTensor(const at::Tensor& tensor, int box_rows, CUtensorMap& map) {
  static const EncodeTensorMap encode = FindEncodeTensorMap();
  // The driver checks the stride of a dimension of size 1, although it is never used.
  const auto stride = [&](int dimension) {
    return static_cast<cuuint64_t>(
        tensor.size(dimension) > 1 ? tensor.stride(dimension) * tensor.element_size() : kRowBytes);
  };
  const cuuint64_t sizes[4] = {kHeadDim, static_cast<cuuint64_t>(tensor.size(1)),
                               static_cast<cuuint64_t>(tensor.size(2)),
                               static_cast<cuuint64_t>(tensor.size(0))};
  const cuuint64_t strides[3] = {stride(1), stride(2), stride(0)};
  const bool bf16 = tensor.scalar_type() == at::kBFloat16;
  const cuuint32_t box[4] = {static_cast<cuuint32_t>(bf16 ? kBoxColumns : kHeadDim),
                             static_cast<cuuint32_t>(box_rows), 1, 1};
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  return encode != nullptr &&
         encode(&map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8, 4,
                const_cast<void*>(tensor.const_data_ptr()), sizes, strides, box, ones,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Returns whether TMA can read a tensor [batch, rows, heads, 128] of this dtype.
inline bool HasRowsOfHeads(const at::Tensor& tensor, at::ScalarType dtype) {
  const int64_t alignment = 16 / tensor.element_size();
  if (tensor.dim() != 4 || !tensor.is_cuda() || tensor.scalar_type() != dtype ||
      tensor.numel() == 0 || tensor.size(3) != kHeadDim || tensor.stride(3) != 1 ||
      tensor.size(1) > std::numeric_limits<int>::max() / 2 ||
      reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 16 != 0) {
    return false;
  }
  for (int i = 0; i < 3; ++i) {
    if (tensor.size(i) > 1 && tensor.stride(i) % alignment != 0) return false;
  }
  return true;
}

// Fills in the parameters that follow from the tensors' shapes. Returns false if there are too many
// tiles.
template <typename Form>
bool FillProblem(const at::Tensor& query, const at::Tensor& key, at::Tensor& out,
                 Problem& problem) {
  const auto tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  const int64_t all_tiles = tiles(query.size(1), kClusterRows) * query.size(2) * query.size(0);
  if (all_tiles > std::numeric_limits<int>::max() / 2) return false;
  problem.out = static_cast<__nv_bfloat16*>(out.mutable_data_ptr());
  problem.out_batch_stride = out.stride(0);
  problem.out_row_stride = out.stride(1);
  problem.out_head_stride = out.stride(2);
  problem.queries = static_cast<int>(query.size(1));
  problem.keys = static_cast<int>(key.size(1));
  problem.heads = static_cast<int>(query.size(2));
  problem.row_tiles = static_cast<int>(tiles(query.size(1), kClusterRows));
  problem.tiles = static_cast<int>(all_tiles);
  problem.key_tiles = static_cast<int>(tiles(key.size(1), Form::kKeys));
  return true;
}

template <typename Form>
void LaunchAttention(const at::Tensor& out, const Problem& problem) {
  const c10::cuda::CUDAGuard guard(out.device());
  int processors = 0;
  C10_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, out.get_device()));
  const auto kernel = &AttentionKernel<Form>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Form::kSharedBytes));
  const int clusters = std::min(processors / kClusterBlocks, problem.tiles);
  kernel<<<clusters * kClusterBlocks, kThreads, Form::kSharedBytes,
           c10::cuda::getCurrentCUDAStream()>>>(problem);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace wan::sm90
