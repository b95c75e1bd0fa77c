// The kernel of attention (attention.h, rounded_attention.h) for heads of 128 channels on compute
// capability 9.0, with scores from bf16 or from 8-bit integers.
//
// A cluster of two blocks works on 256 queries of one head and passes over all keys and values, a
// tile at a time, keeping a running softmax. Each of the two blocks loads half of every tile for
// both of them: one thread loads by TMA, and two warp groups of 64 queries each compute. The warp
// groups take turns: while one uses the tensor cores, the other computes exponentials. In its turn
// a group computes the scores of one tile and the outputs of the previous one. Blocks are
// persistent. Neighbouring clusters work on the same head, so they find its keys and values in the
// L2 cache.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/ops/cuda_ops.h"
#include "engine/ops/online_softmax_sm90.cuh"
#include "engine/ops/rounded_products_sm90.cuh"
#include "engine/ops/sm90.cuh"
#include "engine/ops/tensor_map.h"

namespace wan::sm90 {

constexpr int kHeadDim = 128;
constexpr int kClusterBlocks = 2;
constexpr int kWarpGroup = 128;
constexpr int kGroups = 2;  // warp groups that compute
constexpr int kGroupRows = 64;
constexpr int kBlockRows = kGroups * kGroupRows;
constexpr int kClusterRows = kClusterBlocks * kBlockRows;
constexpr int kThreads = (1 + kGroups) * kWarpGroup;
constexpr int kStages = 2;  // tiles of keys in shared memory, and as many of values

// TMA swizzles rows of at most 128 bytes: 64 columns of bf16 or 128 of 8 bits.
constexpr int kBoxColumns = 64;
constexpr uint32_t kRowBytes = kBoxColumns * 2;
constexpr uint32_t kQueryBox = kGroupRows * kRowBytes;

struct Barriers {
  uint64_t query_full[kGroups], query_empty[kGroups];
  uint64_t key_full[kStages], key_empty[kStages];
  uint64_t value_full[kStages], value_empty[kStages];
};
constexpr uint32_t kSwizzleAlignment = 1024;

// kStepsAhead products with the values are issued before the wait for the scores. kStepsLeft of
// them remain when the other warp group may begin.
constexpr int kStepsAhead = 2;
constexpr int kStepsLeft = 4;

// What differs between the two kinds of scores. kBoxes: boxes in a row of queries or keys. Shared
// memory has queries, keys, values and barriers.
template <typename Score, int kKeysOfTile, int kBoxesOfRow>
struct AttentionForm : ScoreTile<Score, kKeysOfTile> {
  static constexpr int kBoxes = kBoxesOfRow;
  static constexpr uint32_t kQueryBytes = kBoxes * kQueryBox;  // of a group's queries
  static constexpr uint32_t kTileBox = kKeysOfTile * kRowBytes;
  static constexpr uint32_t kKeyBytes = kBoxes * kTileBox;
  static constexpr uint32_t kValueBytes = 2 * kTileBox;
  static constexpr uint32_t kKeysAt = kGroups * kQueryBytes;
  static constexpr uint32_t kValuesAt = kKeysAt + kStages * kKeyBytes;
  static constexpr uint32_t kBarriersAt = kValuesAt + kStages * kValueBytes;
  static constexpr uint32_t kSharedBytes = kBarriersAt + sizeof(Barriers) + kSwizzleAlignment;
  // The search for the maximum runs between the products that are left after kStepsAhead.
  static constexpr int kSearchSlots = AttentionForm::kSteps - kStepsAhead;
};
using Bf16Form = AttentionForm<float, 176, 2>;
using IntegerForm = AttentionForm<int, static_cast<int>(kRoundedKeyTile), 1>;

// Registers per thread of the loading warps and of the computing warps. At launch each thread has
// 168: 24 + 2 * 240 <= 3 * 168.
#define WAN_LOADER_REGISTERS "24"
#define WAN_GROUP_REGISTERS "240"

struct Problem {
  CUtensorMap query, key, value;
  __nv_bfloat16* out;
  int64_t out_batch_stride, out_row_stride, out_head_stride;
  int queries, keys, heads;
  int row_tiles;  // tiles of kClusterRows queries per head
  int tiles;      // tiles over all heads and batch entries
  int key_tiles;
  float scale;  // what scores are multiplied by, times log2(e)
  // With integers only: [batch, head, query] and [batch, head, tile of keys].
  const float* query_scales;
  const float* key_scales;
  int64_t query_scale_stride;  // between heads
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

// The stage (of kStages) that the next tile uses, and the parity of that stage's phase.
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
#define WAN_BARRIER(name, index) shared.Barrier(offsetof(Barriers, name), index)

template <typename Form>
__device__ __forceinline__ void InitBarriers(const SharedMemory<Form>& shared) {
  constexpr int kWarps = kWarpGroup / 32;
  for (int i = 0; i < kGroups; ++i) {
    BarrierInit(WAN_BARRIER(query_full, i), 1);
    BarrierInit(WAN_BARRIER(query_empty, i), kWarps);
  }
  for (int i = 0; i < kStages; ++i) {
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
  Ring key, value;
  uint32_t query_parity = 0;
  constexpr uint16_t kAllBlocks = (1 << kClusterBlocks) - 1;
  const auto load_keys = [&](int tile, const Tile& at) {
    const uint32_t full = WAN_BARRIER(key_full, key.stage);
    BarrierWait(WAN_BARRIER(key_empty, key.stage), key.parity ^ 1);
    BarrierExpect(full, Form::kKeyBytes);
    const uint32_t to = shared.Keys() + key.stage * Form::kKeyBytes + rank * Form::kKeyBytes / 2;
    // A block loads half of the columns, or half of the rows if all columns are in one box.
    const int column = Form::kBoxes == 2 ? rank * kBoxColumns : 0;
    const int row = tile * Form::kKeys + (Form::kBoxes == 2 ? 0 : rank * Form::kKeys / 2);
    LoadBoxInCluster(to, &problem.key, full, column, row, at.head, at.batch, kAllBlocks);
    key.Next();
  };
  const auto load_values = [&](int tile, const Tile& at) {
    const uint32_t full = WAN_BARRIER(value_full, value.stage);
    BarrierWait(WAN_BARRIER(value_empty, value.stage), value.parity ^ 1);
    BarrierExpect(full, Form::kValueBytes);
    LoadBoxInCluster(shared.Values() + value.stage * Form::kValueBytes + rank * Form::kTileBox,
                     &problem.value, full, rank * kBoxColumns, tile * Form::kKeys, at.head,
                     at.batch, kAllBlocks);
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

// Writes a warp group's 64 rows of the result, except rows beyond the last query. Four threads hold
// pairs of values of a row. The four threads exchange values so that each can write 16 bytes at a
// time.
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
      // Exchanges between four threads in two steps, like the transposition of a four by four
      // matrix.
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

__device__ __forceinline__ void MultiplyScores(float (&d)[Bf16Form::kScores], uint64_t a,
                                               uint64_t b, int accumulate) {
  Product64x176(d, a, b, accumulate);
}
__device__ __forceinline__ void MultiplyScores(int (&d)[IntegerForm::kScores], uint64_t a,
                                               uint64_t b, int accumulate) {
  Product64x192(d, a, b, accumulate);
}

// The scales of a thread's two rows, and of the keys that they meet.
template <typename Form>
class RowScales {
 public:
  __device__ __forceinline__ RowScales(const Problem& problem, const Tile& at, int group) {
    if constexpr (Form::kIntegers) {
      const int row = at.row + group * kGroupRows + static_cast<int>(threadIdx.x) / 32 % 4 * 16 +
                      static_cast<int>(threadIdx.x) % 32 / 4;
      const int64_t head = static_cast<int64_t>(at.batch) * problem.heads + at.head;
      const float* const of_head = problem.query_scales + head * problem.query_scale_stride;
      upper_ = row < problem.queries ? of_head[row] * problem.scale : 0.f;
      lower_ = row + 8 < problem.queries ? of_head[row + 8] * problem.scale : 0.f;
      keys_ = problem.key_scales + head * problem.key_tiles;
    } else {
      upper_ = lower_ = problem.scale;
    }
  }
  __device__ __forceinline__ float upper() const { return upper_; }
  __device__ __forceinline__ float lower() const { return lower_; }
  __device__ __forceinline__ float OfTile(int tile) const {
    if constexpr (Form::kIntegers) {
      return keys_[tile];
    } else {
      return 1.f;
    }
  }

 private:
  float upper_, lower_;
  const float* keys_ = nullptr;
};

// The loop of a warp group that computes; `group` is its number in the block, 0 or 1.
template <typename Form>
__device__ __forceinline__ void ComputeTiles(const Problem& problem,
                                             const SharedMemory<Form>& shared, int rank, int first,
                                             int step, int group) {
  const int lane = threadIdx.x % 32;
  const uint64_t query_matrix = MatrixAt(shared.Queries(group), 0);
  const uint64_t key_matrix = MatrixAt(shared.Keys(), 0);
  const uint64_t value_matrix = MatrixAt(shared.Values(), Form::kTileBox);
  // Lane 0 of a warp arrives at the barrier of the cluster's block 0, lane 1 at that of block 1.
  const uint32_t barriers = shared.Barrier(0, 0);
  const uint32_t to_block = ClusterAddress(barriers, lane % kClusterBlocks) - barriers;
  const auto release = [&](uint32_t empty) {
    if (lane < kClusterBlocks) BarrierArriveInCluster(empty + to_block);
  };
  const auto take_turn = [&] { NamedSync<kGroups * kWarpGroup>(1 + group); };
  const auto give_turn = [&] { NamedArrive<kGroups * kWarpGroup>(2 - group); };

  Ring key, value;
  uint32_t query_parity = 0;
  typename Form::Score scores[Form::kScores];
  float out[kOutputs];
  uint32_t probabilities[Form::kSteps][4];
  OnlineSoftmax<Form> softmax(scores, probabilities, out);

  const auto multiply_keys = [&] {
    const uint64_t keys = key_matrix + key.stage * MatrixStep(Form::kKeyBytes);
    constexpr int kProducts = 4 * Form::kBoxes;
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
      MultiplyScores(scores, query_matrix + MatrixStep(i / 4 * kQueryBox + i % 4 * 32),
                     keys + MatrixStep(i / 4 * Form::kTileBox + i % 4 * 32), i > 0);
    }
    ProductCommit();
  };
  const auto multiply_values = [&](int i, int accumulate) {
    const uint64_t values = value_matrix + value.stage * MatrixStep(Form::kValueBytes);
    Product64x128(out, probabilities[i], values + MatrixStep(i * 16 * kRowBytes),
                  i > 0 ? 1 : accumulate);
  };

  if (group == 1) give_turn();
  for (int tile = first; tile < problem.tiles; tile += step) {
    const Tile at = Locate(problem, tile, rank);
    const RowScales<Form> scales(problem, at, group);
    float key_scale = scales.OfTile(problem.key_tiles - 1);
    BarrierWait(WAN_BARRIER(query_full, group), query_parity);
    query_parity ^= 1;

    // Begin with the last tile of keys, because only that one may be incomplete.
    take_turn();
    BarrierWait(WAN_BARRIER(key_full, key.stage), key.parity);
    ProductFence();
    multiply_keys();
    give_turn();
    softmax.SetScale(scales.upper() * key_scale, scales.lower() * key_scale);
    ProductWait<0>();
    Pin(scores);
    release(WAN_BARRIER(key_empty, key.stage));
    key.Next();
    softmax.First(problem.keys - (problem.key_tiles - 1) * Form::kKeys);
    int accumulate = 0;

#pragma unroll 1
    for (int i = problem.key_tiles - 1; i > 0; --i) {
      key_scale = scales.OfTile(i - 1);
      take_turn();
      BarrierWait(WAN_BARRIER(key_full, key.stage), key.parity);
      Pin(out);
      Pin(probabilities);
      ProductFence();
      multiply_keys();
      BarrierWait(WAN_BARRIER(value_full, value.stage), value.parity);
      // A warp that issues a product stalls until its earlier products are nearly done. So the
      // search for the maximum runs between products.
      ProductFence();

#pragma unroll
      for (int j = 0; j < kStepsAhead; ++j) multiply_values(j, accumulate);
      ProductCommit();
      softmax.SetScale(scales.upper() * key_scale, scales.lower() * key_scale);
      ProductWait<1>();
      Pin(scores);
      release(WAN_BARRIER(key_empty, key.stage));
      key.Next();
#pragma unroll
      for (int j = 0; j < Form::kSearchSlots; ++j) {
        softmax.template SearchMaximum<Form::kSearchSlots>(j);
        if (j == Form::kSearchSlots - kStepsLeft) give_turn();
        ProductFence();
        multiply_values(kStepsAhead + j, 1);
      }
      ProductCommit();
      accumulate = 1;
      softmax.UpdateMaximum();
      ProductWait<0>();
      Pin(out);
      Pin(probabilities);
      release(WAN_BARRIER(value_empty, value.stage));
      value.Next();
      softmax.Next();
    }
    __syncwarp();
    if (lane == 0) BarrierArrive(WAN_BARRIER(query_empty, group));

    take_turn();
    BarrierWait(WAN_BARRIER(value_full, value.stage), value.parity);
    Pin(out);
    Pin(probabilities);
    ProductFence();
#pragma unroll
    for (int j = 0; j < Form::kSteps; ++j) multiply_values(j, accumulate);
    ProductCommit();
    give_turn();
    const float inverse0 = softmax.Inverse(0);
    const float inverse1 = softmax.Inverse(1);
    ProductWait<0>();
    Pin(out);
    release(WAN_BARRIER(value_empty, value.stage));
    value.Next();
    WriteRows(problem, at, group, out, inverse0, inverse1);
  }
  // Wait for the other group's last arrival, so that no arrival stays pending.
  if (group == 0) take_turn();
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
    ComputeTiles(problem, shared, rank, first, step, group - 1);
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

// Whether TMA can read the tensor [batch, rows, heads, 128] of this dtype.
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

// Fills in what follows from the tensors' shapes. Returns false if there are too many tiles.
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
