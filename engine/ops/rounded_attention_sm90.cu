// RoundedAttentionInto (rounded_attention.h) in bf16 for heads of 128 channels on compute
// capability 9.0.
#include <cmath>

#include "engine/ops/attention_sm90.cuh"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/rounded_attention.h"
#include "engine/ops/rounded_products_sm90.cuh"
#include "engine/ops/rounded_softmax_sm90.cuh"

namespace wan {
namespace sm90 {
namespace {

constexpr int kTileKeys = static_cast<int>(kRoundedKeyTile);
// A TMA box of values has 64 channels and 64 keys; its rows of 64 bytes are swizzled.
constexpr int kValueBoxKeys = 64;
constexpr uint32_t kValueBoxBytes = kHeadDim * kValueBoxKeys;  // bytes of one box for the channels
                                                               // of both blocks

struct IntegerForm : AttentionLayout<kTileKeys, /*kBoxesOfRow=*/1, kTileKeys * kHeadDim,
                                     kTileKeys * kHeadDim, /*kStagesOfTiles=*/4>,
                     ScoreTile<kTileKeys> {
  static constexpr int kSteps = kKeys / 32;  // products with the values
  // The search for the maximum runs between the products after the first product.
  static constexpr int kSearchSlots = kSteps - 1;

  // Load this block's half of a tile for the whole cluster: half of the keys, or half of the
  // values' channels. `to` is the tile's place in shared memory, `full` the barrier at which the
  // bytes are counted.
  static __device__ __forceinline__ void LoadKeys(const Problem& problem, uint32_t to,
                                                  uint32_t full, int tile, const Tile& at,
                                                  int rank) {
    LoadBoxInCluster(to + rank * (kKeyBytes / 2), &problem.key, full, 0,
                     tile * kKeys + rank * (kKeys / 2), at.head, at.batch, kAllBlocks);
  }
  static __device__ __forceinline__ void LoadValues(const Problem& problem, uint32_t to,
                                                    uint32_t full, int tile, const Tile& at,
                                                    int rank) {
#pragma unroll
    for (int box = 0; box < kKeys / kValueBoxKeys; ++box) {
      LoadBoxInCluster(to + box * kValueBoxBytes + rank * (kValueBoxBytes / 2), &problem.value,
                       full, tile * kKeys + box * kValueBoxKeys, rank * (kHeadDim / 2), at.head,
                       at.batch, kAllBlocks);
    }
  }
  // Does the work of Bf16Form::Compute (attention_sm90.cu) in integers.
  static __device__ __forceinline__ void Compute(const Problem& problem,
                                                 const SharedMemory<IntegerForm>& shared, int rank,
                                                 int first, int step, int group);
};

// The matrix descriptor of values, whose rows of 64 bytes TMA has swizzled; groups of eight rows
// are 512 bytes apart.
__device__ __forceinline__ uint64_t ValueMatrixAt(uint32_t address) {
  constexpr uint64_t kSwizzle64 = uint64_t{2} << 62;
  constexpr uint64_t kRowsApart = 512;
  return kSwizzle64 | (kRowsApart >> 4 << 32) | ((address & 0x3FFFF) >> 4);
}

// The scales of a thread's two rows of queries, and of the tile's keys.
class RowScales {
 public:
  __device__ __forceinline__ RowScales(const Problem& problem, const Tile& at, int group) {
    const int row = at.row + group * kGroupRows + static_cast<int>(threadIdx.x) / 32 % 4 * 16 +
                    static_cast<int>(threadIdx.x) % 32 / 4;
    const int64_t head = static_cast<int64_t>(at.batch) * problem.heads + at.head;
    const float* const of_head = problem.query_scales + head * problem.query_scale_stride;
    upper_ = row < problem.queries ? of_head[row] * problem.scale : 0.f;
    lower_ = row + 8 < problem.queries ? of_head[row + 8] * problem.scale : 0.f;
    keys_ = problem.key_scales + head * problem.key_tiles;
  }
  __device__ __forceinline__ float upper() const { return upper_; }
  __device__ __forceinline__ float lower() const { return lower_; }
  __device__ __forceinline__ float OfTile(int tile) const { return keys_[tile]; }

 private:
  float upper_, lower_;
  const float* keys_;
};

// Converts mean codes to values.
__device__ __forceinline__ void ToValues(const Problem& problem, const Tile& at,
                                         float (&out)[kOutputs]) {
  const int64_t head = static_cast<int64_t>(at.batch) * problem.heads + at.head;
  const int64_t first = head * kHeadDim + 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
  for (int i = 0; i < kOutputs; i += 4) {
    const auto scales = *reinterpret_cast<const float2*>(problem.value_scales + first + 2 * i);
    const auto means = *reinterpret_cast<const float2*>(problem.value_means + first + 2 * i);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float& even = out[i + 2 * row];
      float& odd = out[i + 2 * row + 1];
      even = fmaf(even - static_cast<float>(kMeanValueCode), scales.x, means.x);
      odd = fmaf(odd - static_cast<float>(kMeanValueCode), scales.y, means.y);
    }
  }
}

__device__ __forceinline__ void IntegerForm::Compute(const Problem& problem,
                                                     const SharedMemory<IntegerForm>& shared,
                                                     int rank, int first, int step, int group) {
  using Form = IntegerForm;
  const int lane = threadIdx.x % 32;
  const uint64_t query_matrix = MatrixAt(shared.Queries(group), 0);
  const uint64_t key_matrix = MatrixAt(shared.Keys(), 0);
  const uint64_t value_matrix = ValueMatrixAt(shared.Values());
  // Lane 0 of a warp arrives at the barrier of the cluster's block 0, lane 1 at the barrier of
  // block 1.
  const uint32_t barriers = shared.Barrier(0, 0);
  const uint32_t to_block = ClusterAddress(barriers, lane % kClusterBlocks) - barriers;
  const auto release = [&](uint32_t empty) {
    if (lane < kClusterBlocks) BarrierArriveInCluster(empty + to_block);
  };
  const auto take_turn = [&] { NamedSync<kGroups * kWarpGroup>(1 + group); };
  const auto give_turn = [&] { NamedArrive<kGroups * kWarpGroup>(2 - group); };

  Ring<Form::kStages> key, value;
  uint32_t query_parity = 0;
  int scores[Form::kScores];
  int sums[kOutputs];
  float out[kOutputs];
  uint32_t probabilities[Form::kSteps][4];
  RoundedSoftmax<Form> softmax(scores, probabilities, sums, out);

  const auto multiply_keys = [&] {
    const uint64_t keys = key_matrix + key.stage * MatrixStep(Form::kKeyBytes);
#pragma unroll
    for (int i = 0; i < kHeadDim / 32; ++i) {
      Product64x128(scores, query_matrix + MatrixStep(i * 32), keys + MatrixStep(i * 32), i > 0);
    }
    ProductCommit();
  };
  const auto multiply_values = [&](int i) {
    const uint64_t values = value_matrix + value.stage * MatrixStep(Form::kValueBytes);
    Product64x128(sums, probabilities[i], values + MatrixStep(i / 2 * kValueBoxBytes + i % 2 * 32),
                  i > 0);
  };

  if (group == 1) give_turn();
  for (int tile = first; tile < problem.tiles; tile += step) {
    const Tile at = Locate(problem, tile, rank);
    const RowScales scales(problem, at, group);
    float key_scale = scales.OfTile(problem.key_tiles - 1);
    BarrierWait(WAN_BARRIER(query_full, group), query_parity);
    query_parity ^= 1;

    // Begin with the last tile of keys, because only the last tile may be incomplete.
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

#pragma unroll 1
    for (int i = problem.key_tiles - 1; i > 0; --i) {
      key_scale = scales.OfTile(i - 1);
      take_turn();
      BarrierWait(WAN_BARRIER(key_full, key.stage), key.parity);
      Pin(probabilities);
      ProductFence();
      multiply_keys();
      BarrierWait(WAN_BARRIER(value_full, value.stage), value.parity);
      // A warp that issues a product stalls until its earlier products are nearly done. So the
      // search for the maximum runs between products.
      ProductFence();
      multiply_values(0);
      ProductCommit();
      softmax.SetScale(scales.upper() * key_scale, scales.lower() * key_scale);
      ProductWait<1>();
      Pin(scores);
      release(WAN_BARRIER(key_empty, key.stage));
      key.Next();
      Unroll<Form::kSearchSlots>([&](auto slot) {
        constexpr int j = decltype(slot)::value;
        softmax.template SearchMaximum<Form::kSearchSlots, j>();
        if (j == Form::kSearchSlots - 1) give_turn();
        ProductFence();
        multiply_values(1 + j);
      });
      ProductCommit();
      softmax.UpdateMaximum();
      ProductWait<0>();
      Pin(sums);
      Pin(probabilities);
      release(WAN_BARRIER(value_empty, value.stage));
      value.Next();
      softmax.Next();
    }
    __syncwarp();
    if (lane == 0) BarrierArrive(WAN_BARRIER(query_empty, group));

    take_turn();
    BarrierWait(WAN_BARRIER(value_full, value.stage), value.parity);
    Pin(probabilities);
    ProductFence();
#pragma unroll
    for (int j = 0; j < Form::kSteps; ++j) multiply_values(j);
    ProductCommit();
    give_turn();
    ProductWait<0>();
    Pin(sums);
    release(WAN_BARRIER(value_empty, value.stage));
    value.Next();
    softmax.Finish();
    ToValues(problem, at, out);
    WriteRows(problem, at, group, out, 1.f, 1.f);
  }
  // Wait for the other group's last arrival, so that no arrival stays pending.
  if (group == 0) take_turn();
}

// Makes a TMA descriptor of RoundedValues::codes. Returns false if the driver refuses.
bool DescribeValues(const at::Tensor& codes, CUtensorMap& map) {
  static const EncodeTensorMap encode = FindEncodeTensorMap();
  const cuuint64_t sizes[4] = {
      static_cast<cuuint64_t>(codes.size(3)), static_cast<cuuint64_t>(codes.size(2)),
      static_cast<cuuint64_t>(codes.size(1)), static_cast<cuuint64_t>(codes.size(0))};
  const cuuint64_t strides[3] = {sizes[0], sizes[0] * sizes[1], sizes[0] * sizes[1] * sizes[2]};
  const cuuint32_t box[4] = {kValueBoxKeys, kHeadDim / kClusterBlocks, 1, 1};
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  return encode != nullptr &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, const_cast<void*>(codes.const_data_ptr()),
                sizes, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace
}  // namespace sm90

namespace {

using namespace sm90;

bool FitValues(const RoundedValues& value, const at::Tensor& keys) {
  const at::Tensor& codes = value.codes;
  const int64_t tiles = (keys.size(1) + kRoundedKeyTile - 1) / kRoundedKeyTile;
  return codes.is_contiguous() && codes.is_cuda() && codes.scalar_type() == at::kByte &&
         codes.dim() == 4 && codes.size(0) == keys.size(0) && codes.size(1) == keys.size(2) &&
         codes.size(2) == kHeadDim && codes.size(3) == tiles * kRoundedKeyTile &&
         value.scales.is_contiguous() && value.means.is_contiguous();
}

bool RoundedAttentionCuda(const RoundedHeads& query, const RoundedHeads& key,
                          const RoundedValues& value, at::Tensor& out) {
  const bool supported =
      HasRowsOfHeads(query.codes, at::kChar) && HasRowsOfHeads(key.codes, at::kChar) &&
      FitValues(value, key.codes) && HasRowsOfHeads(out, at::kBFloat16) && out.is_contiguous() &&
      out.sizes() == query.codes.sizes() && key.codes.size(0) == query.codes.size(0) &&
      key.codes.size(2) == query.codes.size(2) && key.scales.is_contiguous() &&
      query.scales.stride(2) == 1 &&
      (query.scales.size(0) == 1 ||
       query.scales.stride(0) == query.scales.size(1) * query.scales.stride(1)) &&
      GetCudaOps().compute_capability(out.get_device()) == 90;
  Problem problem = {};
  if (!supported || !DescribeTensor(query.codes, kGroupRows, problem.query) ||
      !DescribeTensor(key.codes, IntegerForm::kKeys / kClusterBlocks, problem.key) ||
      !DescribeValues(value.codes, problem.value) ||
      !FillProblem<IntegerForm>(query.codes, key.codes, out, problem)) {
    return false;
  }
  problem.scale = static_cast<float>(std::log2(std::exp(1.0)));
  problem.query_scales = query.scales.const_data_ptr<float>();
  problem.key_scales = key.scales.const_data_ptr<float>();
  problem.value_scales = value.scales.const_data_ptr<float>();
  problem.value_means = value.means.const_data_ptr<float>();
  problem.query_scale_stride = query.scales.stride(1);
  LaunchAttention<IntegerForm>(out, problem);
  return true;
}

const bool kRegistered = (GetCudaOps().rounded_attention = &RoundedAttentionCuda, true);

}  // namespace
}  // namespace wan
