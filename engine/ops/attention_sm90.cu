// AttentionInto (attention.h) in bf16 for heads of 128 channels on compute capability 9.0.
#include <cmath>

#include "engine/ops/attention_sm90.cuh"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/online_softmax_sm90.cuh"

namespace wan {
namespace sm90 {
namespace {

// A warp group issues kStepsAhead products with the values before it waits for the scores. When
// kStepsLeft of these products remain, the other warp group may begin.
constexpr int kStepsAhead = 2;
constexpr int kStepsLeft = 4;

constexpr int kTileKeys = 176;
constexpr uint32_t kBoxOfTile = kTileKeys * kRowBytes;

struct Bf16Form : AttentionLayout<kTileKeys, /*kBoxesOfRow=*/2, 2 * kBoxOfTile, 2 * kBoxOfTile,
                                  /*kStagesOfTiles=*/2>,
                  ScoreTile<kTileKeys> {
  static constexpr uint32_t kTileBox = kBoxOfTile;
  static constexpr int kSteps = kKeys / 16;  // products with the values
  // The search for the maximum runs between the products after the first kStepsAhead products.
  static constexpr int kSearchSlots = kSteps - kStepsAhead;

  // Load this block's half of a tile of keys or values, 64 columns, for the whole cluster. `to` is
  // the tile's place in shared memory, `full` the barrier at which the bytes are counted.
  static __device__ __forceinline__ void LoadKeys(const Problem& problem, uint32_t to,
                                                  uint32_t full, int tile, const Tile& at,
                                                  int rank) {
    LoadBoxInCluster(to + rank * kTileBox, &problem.key, full, rank * kBoxColumns, tile * kKeys,
                     at.head, at.batch, kAllBlocks);
  }
  static __device__ __forceinline__ void LoadValues(const Problem& problem, uint32_t to,
                                                    uint32_t full, int tile, const Tile& at,
                                                    int rank) {
    LoadBoxInCluster(to + rank * kTileBox, &problem.value, full, rank * kBoxColumns, tile * kKeys,
                     at.head, at.batch, kAllBlocks);
  }
  // The loop of a warp group that computes; `group` is its number in the block, 0 or 1. Clusters
  // take the tiles of queries `first`, `first` + `step` and so on.
  static __device__ __forceinline__ void Compute(const Problem& problem,
                                                 const SharedMemory<Bf16Form>& shared, int rank,
                                                 int first, int step, int group);
};

__device__ __forceinline__ void Bf16Form::Compute(const Problem& problem,
                                                  const SharedMemory<Bf16Form>& shared, int rank,
                                                  int first, int step, int group) {
  using Form = Bf16Form;
  const int lane = threadIdx.x % 32;
  const uint64_t query_matrix = MatrixAt(shared.Queries(group), 0);
  const uint64_t key_matrix = MatrixAt(shared.Keys(), 0);
  const uint64_t value_matrix = MatrixAt(shared.Values(), Form::kTileBox);
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
  float scores[Form::kScores];
  float out[kOutputs];
  uint32_t probabilities[Form::kSteps][4];
  OnlineSoftmax<Form> softmax(scores, probabilities, out, problem.scale);

  const auto multiply_keys = [&] {
    const uint64_t keys = key_matrix + key.stage * MatrixStep(Form::kKeyBytes);
#pragma unroll
    for (int i = 0; i < 4 * Form::kBoxes; ++i) {
      Product64x176(scores, query_matrix + MatrixStep(i / 4 * kQueryBox + i % 4 * 32),
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
    BarrierWait(WAN_BARRIER(query_full, group), query_parity);
    query_parity ^= 1;

    // Begin with the last tile of keys, because only the last tile may be incomplete.
    take_turn();
    BarrierWait(WAN_BARRIER(key_full, key.stage), key.parity);
    ProductFence();
    multiply_keys();
    give_turn();
    ProductWait<0>();
    Pin(scores);
    release(WAN_BARRIER(key_empty, key.stage));
    key.Next();
    softmax.First(problem.keys - (problem.key_tiles - 1) * Form::kKeys);
    int accumulate = 0;

#pragma unroll 1
    for (int i = problem.key_tiles - 1; i > 0; --i) {
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
      ProductWait<1>();
      Pin(scores);
      release(WAN_BARRIER(key_empty, key.stage));
      key.Next();
      Unroll<Form::kSearchSlots>([&](auto slot) {
        constexpr int j = decltype(slot)::value;
        softmax.template SearchMaximum<Form::kSearchSlots, j>();
        if (j == Form::kSearchSlots - kStepsLeft) give_turn();
        ProductFence();
        multiply_values(kStepsAhead + j, 1);
      });
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

}  // namespace
}  // namespace sm90

namespace {

using namespace sm90;

int ComputeCapability(int device) {
  int major = 0;
  int minor = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

bool AttentionCuda(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   at::Tensor& out) {
  const auto fits = [](const at::Tensor& t) { return HasRowsOfHeads(t, at::kBFloat16); };
  const bool supported = fits(query) && fits(key) && fits(value) && fits(out) &&
                         out.is_contiguous() && out.sizes() == query.sizes() &&
                         key.sizes() == value.sizes() && key.size(0) == query.size(0) &&
                         key.size(2) == query.size(2) &&
                         ComputeCapability(query.get_device()) == 90;
  Problem problem = {};
  if (!supported || !DescribeTensor(query, kGroupRows, problem.query) ||
      !DescribeTensor(key, Bf16Form::kKeys, problem.key) ||
      !DescribeTensor(value, Bf16Form::kKeys, problem.value) ||
      !FillProblem<Bf16Form>(query, key, out, problem)) {
    return false;
  }
  problem.scale = static_cast<float>(std::log2(std::exp(1.0)) / std::sqrt(double{kHeadDim}));
  LaunchAttention<Bf16Form>(out, problem);
  return true;
}

const bool kRegistered = (GetCudaOps().attention = &AttentionCuda,
                          GetCudaOps().compute_capability = &ComputeCapability, true);

}  // namespace
}  // namespace wan
