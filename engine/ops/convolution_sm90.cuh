// The device half of convolution_sm90.cu: how a block computes tiles of a convolution's result.
//
// A tile is 2 x 8 x 16 pixels (a patch of 8 x 16 for each of two computing warp groups) by kN
// channels. Each tile sums products over kernel taps and over chunks of the input's channels, each
// chunk kRow bytes long. A stage in shared memory belongs to one chunk of channels, one kernel
// frame and one kernel column. The stage holds the weights of the column's kTaps rows and, for each
// computing warp group, the 8 + kTaps - 1 rows of pixels that these taps share. So each row is
// loaded only once. Outside the frame TMA reads zeros. One thread of a block loads. Blocks are
// persistent, and neighbouring blocks share pixels or weights through the L2 cache.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "engine/ops/convolution_products_sm90.cuh"
#include "engine/ops/fused_convolution.h"
#include "engine/ops/row_kernel.cuh"
#include "engine/ops/sm90.cuh"

namespace wan::sm90 {

constexpr int kConvolutionGroup = 128;  // number of threads in a warp group
constexpr int kConvolutionGroups = 2;   // number of warp groups that compute
constexpr int kConvolutionThreads = (1 + kConvolutionGroups) * kConvolutionGroup;
constexpr int kPatchRows = 8;
constexpr int kPatchColumns = 16;
constexpr int kMostRuns = 3;  // maximum number of runs of input frames

// Bytes of channels that a stage holds per pixel and per weight. With twice as many bytes, shared
// memory would have room for only two stages, which is 20 % slower.
constexpr int kRow = kFusedChannelBytes;

struct ConvolutionProblem {
  CUtensorMap runs[kMostRuns];  // the input's runs of frames; the kernel never reads unused runs
  CUtensorMap weight;
  int run_ends[kMostRuns];  // index of the first frame after each run
  const void* bias;
  const void* addend;  // null: there is no addend
  void* out;
  int leading_zeros;
  int kernel_frames, kernel_columns;  // the number of kernel rows is a template argument
  int pad_rows, pad_columns;
  int chunks;            // number of chunks of the input's channels, each of kRow bytes
  int channels;          // number of result channels
  int time_spread;       // result frames per input frame: 1 or 2
  int pixel_spread;      // result rows (and columns) per input row: 1 or 2
  int tiles_of_a_phase;  // tiles of kN channels for each frame or pixel of a cell, if the result is
                         // spread
  int channel_tiles;     // tiles of kN channels over all frames or pixels of a cell
  int frames, height, width;
  int row_patches, column_patches;
  int patches;
  int tiles;
  // With pixel_spread 2, `addend` has addend_channels channels and is spread as well: result
  // channel c gets the addend's channel addend_step * c plus an offset, and each addend frame is
  // added to addend_made result frames.
  int addend_step, addend_channels, addend_time_factor, addend_made;
};

template <int kN, int kTaps>
struct ConvolutionStage {
  static constexpr uint32_t kImageRow = kPatchColumns * kRow;
  static constexpr uint32_t kPatch = (kPatchRows + kTaps - 1) * kImageRow;
  static constexpr uint32_t kTap = kN * kRow;
  static constexpr uint32_t kWeights = kConvolutionGroups * kPatch;
  static constexpr uint32_t kBytes = kWeights + kTaps * kTap;
  static constexpr uint32_t kAlignment = 1024;
  static constexpr int kRoom = 226 * 1024;
  static constexpr int kMost = 8;
  static constexpr int kCount = kRoom / kBytes > kMost ? kMost : kRoom / kBytes;
  // Two barriers per stage follow the stages in shared memory: one says that the stage is filled,
  // the other that it is free.
  static constexpr uint32_t kShared = kCount * (kBytes + 16) + kAlignment;
  static_assert(kPatch % 512 == 0 && kTap % 512 == 0 && kBytes % kAlignment == 0,
                "rows of 64 bytes are swizzled in groups of eight");
};

struct Patch {
  int frame, row, column;
};

__device__ __forceinline__ Patch LocatePatch(const ConvolutionProblem& p, int patch) {
  const int of_a_frame = p.row_patches * p.column_patches;
  const int frame = patch / of_a_frame;
  const int rest = patch - frame * of_a_frame;
  const int row = rest / p.column_patches;
  return {frame, row * kPatchRows, (rest - row * p.column_patches) * kPatchColumns};
}

// A tile's position: its pair of patches, its channels, and its frame or pixel in a cell if the
// result is spread.
struct ConvolutionTile {
  int pair, channel_tile, phase;
  __device__ __forceinline__ ConvolutionTile(const ConvolutionProblem& p, int tile)
      : pair(tile / p.channel_tiles),
        channel_tile(tile - pair * p.channel_tiles),
        phase(channel_tile / p.tiles_of_a_phase) {}
  __device__ __forceinline__ int Row(const ConvolutionProblem& p) const {
    return p.pixel_spread == 2 ? phase >> 1 : 0;
  }
  __device__ __forceinline__ int Column(const ConvolutionProblem& p) const {
    return p.pixel_spread == 2 ? phase & 1 : 0;
  }
  __device__ __forceinline__ int Frame(const ConvolutionProblem& p) const {
    return p.time_spread == 2 ? phase : 0;
  }
};

// Makes the descriptor of a matrix in shared memory, whose rows of kRow bytes TMA has swizzled.
__device__ __forceinline__ uint64_t SwizzledRowsAt(uint32_t address) {
  constexpr uint64_t kSwizzle64 = uint64_t{2} << 62;
  constexpr uint64_t kRowsApart = 8 * kRow;
  return kSwizzle64 | (kRowsApart >> 4 << 32) | ((address & 0x3FFFF) >> 4);
}

template <typename Stage>
struct StageRing {
  uint32_t base;
  int index = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ uint32_t Memory() const { return base + index * Stage::kBytes; }
  __device__ __forceinline__ uint32_t Filled() const {
    return base + Stage::kCount * Stage::kBytes + 16 * index;
  }
  __device__ __forceinline__ uint32_t Free() const { return Filled() + 8; }
  __device__ __forceinline__ void Next() {
    if (++index == Stage::kCount) {
      index = 0;
      parity ^= 1;
    }
  }
};

// The loop of the thread that loads a block's stages.
template <typename T, int kN, int kTaps>
__device__ __forceinline__ void LoadStages(const ConvolutionProblem& p, uint32_t base) {
  using Stage = ConvolutionStage<kN, kTaps>;
  constexpr int kChunk = kRow / sizeof(T);
  StageRing<Stage> ring{base};
  for (int index = blockIdx.x; index < p.tiles; index += gridDim.x) {
    const ConvolutionTile tile(p, index);
    const int pad_rows = p.pad_rows - tile.Row(p);
    const int pad_columns = p.pad_columns - tile.Column(p);
    Patch patches[kConvolutionGroups];
    for (int g = 0; g < kConvolutionGroups; ++g) {
      // The last pair may consist of only one patch.
      patches[g] = LocatePatch(p, min(tile.pair * kConvolutionGroups + g, p.patches - 1));
    }
    for (int kt = 0; kt < p.kernel_frames; ++kt) {
      for (int chunk = 0; chunk < p.chunks; ++chunk) {
        for (int kw = 0; kw < p.kernel_columns; ++kw) {
          BarrierWait(ring.Free(), ring.parity ^ 1);
          BarrierExpect(ring.Filled(), Stage::kBytes);
#pragma unroll
          for (int g = 0; g < kConvolutionGroups; ++g) {
            // Zero frames precede the first run of frames.
            const int frame = patches[g].frame + kt - p.leading_zeros;
            const int run = frame < p.run_ends[0] ? 0 : frame < p.run_ends[1] ? 1 : 2;
            const int first = run == 0 ? 0 : p.run_ends[run - 1];
            LoadBox(ring.Memory() + g * Stage::kPatch, &p.runs[run], ring.Filled(), chunk * kChunk,
                    patches[g].column + kw - pad_columns, patches[g].row - pad_rows, frame - first);
          }
#pragma unroll
          for (int kh = 0; kh < kTaps; ++kh) {
            LoadBox(ring.Memory() + Stage::kWeights + kh * Stage::kTap, &p.weight, ring.Filled(),
                    chunk * kChunk, (kt * kTaps + kh) * p.kernel_columns + kw,
                    tile.channel_tile * kN, 0);
          }
          ring.Next();
        }
      }
    }
  }
}

// Four lanes hold one row of the matrix: each has two neighbouring values in each of four runs of
// eight columns. The four lanes exchange values so that each lane holds one whole run.
__device__ __forceinline__ void GatherRun(float (&v)[4][2], int lane) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = lane & distance;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & distance) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float other =
            __shfl_xor_sync(0xffffffffu, upper ? v[i][e] : v[i + distance][e], distance);
        if (upper) {
          v[i][e] = other;
        } else {
          v[i + distance][e] = other;
        }
      }
    }
  }
}

// Returns the addend for the result's pixel `at`, for the eight channels from `channel` on.
// `frame`, `row` and `column` are positions in the input.
template <typename T>
__device__ __forceinline__ Vector AddendAt(const ConvolutionProblem& p, const ConvolutionTile& tile,
                                           int64_t at, int frame, int row, int column,
                                           int channel) {
  const T* addend = static_cast<const T*>(p.addend);
  if (p.pixel_spread == 1) return LoadVector(addend + at);
  // The order is frame, row and column within a cell, as in AddDuplicateUp3d. If `addend` has too
  // few channels, each channel is repeated.
  const int in_cell =
      frame % p.addend_made + p.addend_time_factor - p.addend_made;  // position in the cell; if
                                                                     // addend_made is less than the
                                                                     // factor, these are the cell's
                                                                     // last frames
  const int values = 4 * p.addend_time_factor;
  const int repeats = values / p.addend_step;
  const int offset = ((in_cell * 2 + tile.Row(p)) * 2 + tile.Column(p)) / repeats;
  const int64_t pixel =
      (static_cast<int64_t>(frame / p.addend_made) * p.height + row) * p.width + column;
  addend += pixel * p.addend_channels + channel * p.addend_step;
  const Vector low = LoadVector(addend);
  if (p.addend_step == 1) return low;
  const Vector high = LoadVector(addend + kVector);
  Vector result;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    result.values[i] = offset == 0 ? low.values[2 * i] : low.values[2 * i + 1];
    result.values[i + kVector / 2] = offset == 0 ? high.values[2 * i] : high.values[2 * i + 1];
  }
  return result;
}

// Adds bias and addend to a warp group's sums and writes the result.
template <typename Out, int kN>
__device__ __forceinline__ void StorePatch(const ConvolutionProblem& p, const ConvolutionTile& tile,
                                           const Patch& patch, const float (&sums)[2][kN / 2]) {
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp % 4;
  const int quad = lane % 4;
  const int first_channel = (tile.channel_tile - tile.phase * p.tiles_of_a_phase) * kN;
  const Out* bias = static_cast<const Out*>(p.bias);
  Out* out = static_cast<Out*>(p.out);
  const int out_frame = patch.frame * p.time_spread + tile.Frame(p);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = patch.row + half * (kPatchRows / 2) + warp;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int column = patch.column + lane / 4 + 8 * i;
      const bool inside = row < p.height && column < p.width;
      const int64_t out_row = static_cast<int64_t>(out_frame) * p.height * p.pixel_spread +
                              row * p.pixel_spread + tile.Row(p);
      const int64_t pixel =
          out_row * p.width * p.pixel_spread + column * p.pixel_spread + tile.Column(p);
      if constexpr (kN < 32) {
        // Writes results with few channels, such as RGB.
#pragma unroll
        for (int j = 0; j < kN / 4; ++j) {
          const int channel = first_channel + j / 2 * 8 + 2 * quad + j % 2;
          if (!inside || channel >= p.channels) continue;
          const int64_t at = pixel * p.channels + channel;
          float y = sums[half][j / 2 * 4 + 2 * i + j % 2] + static_cast<float>(bias[channel]);
          if (p.addend != nullptr) y += static_cast<float>(static_cast<const Out*>(p.addend)[at]);
          out[at] = static_cast<Out>(y);
        }
      } else {
#pragma unroll
        for (int g = 0; g < kN / 32; ++g) {
          float v[4][2];
#pragma unroll
          for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) v[j][e] = sums[half][(g * 4 + j) * 4 + 2 * i + e];
          }
          GatherRun(v, lane);
          if (!inside) continue;
          const int channel = first_channel + g * 32 + quad * kVector;
          const int64_t at = pixel * p.channels + channel;
          Vector y = LoadVector(bias + channel);
#pragma unroll
          for (int e = 0; e < kVector; ++e) y.values[e] += v[e / 2][e % 2];
          if (p.addend != nullptr) {
            const Vector more = AddendAt<Out>(p, tile, at, patch.frame, row, column, channel);
#pragma unroll
            for (int e = 0; e < kVector; ++e) y.values[e] += more.values[e];
          }
          StoreVector(out + at, y);
        }
      }
    }
  }
}

// The loop of a warp group that computes tiles.
template <typename T, typename Out, int kN, int kTaps>
__device__ __forceinline__ void ConvolvePatches(const ConvolutionProblem& p, uint32_t base,
                                                int group) {
  using Stage = ConvolutionStage<kN, kTaps>;
  constexpr uint32_t kHalfPatch = kPatchRows / 2 * Stage::kImageRow;
  constexpr int kBytesOfAProduct = 32;
  const bool tells = threadIdx.x % kWarp == 0;
  const int steps = p.kernel_frames * p.chunks * p.kernel_columns;
  StageRing<Stage> ring{base};
  for (int index = blockIdx.x; index < p.tiles; index += gridDim.x) {
    const ConvolutionTile tile(p, index);
    float sums[2][kN / 2];
    uint32_t read = 0;  // the previous stage, which issued products may still read
    for (int step = 0; step < steps; ++step) {
      BarrierWait(ring.Filled(), ring.parity);
      const uint64_t patch = SwizzledRowsAt(ring.Memory() + group * Stage::kPatch);
      const uint64_t weights = SwizzledRowsAt(ring.Memory() + Stage::kWeights);
      ProductFence();
#pragma unroll
      for (int kh = 0; kh < kTaps; ++kh) {
#pragma unroll
        for (int k = 0; k < kRow; k += kBytesOfAProduct) {
          const uint64_t a = patch + MatrixStep(kh * Stage::kImageRow + k);
          const uint64_t b = weights + MatrixStep(kh * Stage::kTap + k);
          Product<T, kN>::Add(sums[0], a, b, kh + k + step);
          Product<T, kN>::Add(sums[1], a + MatrixStep(kHalfPatch), b, kh + k + step);
        }
      }
      ProductCommit();
      ProductWait<1>();
      if (tells && step > 0) BarrierArrive(read);
      read = ring.Free();
      ring.Next();
    }
    ProductWait<0>();
    if (tells) BarrierArrive(read);
    const int patch = tile.pair * kConvolutionGroups + group;
    if (patch < p.patches) StorePatch<Out, kN>(p, tile, LocatePatch(p, patch), sums);
  }
}

// Registers per thread of the loading warps and of the computing warps. A thread has 168 registers
// at launch: 24 + 2 * 240 <= 3 * 168.
template <typename T, typename Out, int kN, int kTaps>
__global__ void __launch_bounds__(kConvolutionThreads, 1)
    ConvolutionKernel(const __grid_constant__ ConvolutionProblem p) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  using Stage = ConvolutionStage<kN, kTaps>;
  extern __shared__ uint8_t memory[];
  constexpr uint32_t kAlign = Stage::kAlignment - 1;
  const uint32_t base = (SharedAddress(memory) + kAlign) & ~kAlign;
  if (threadIdx.x == 0) {
    StageRing<Stage> ring{base};
    for (; ring.parity == 0; ring.Next()) {
      BarrierInit(ring.Filled(), 1);
      BarrierInit(ring.Free(), kConvolutionGroups * kConvolutionGroup / kWarp);
    }
    BarrierInitFence();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kConvolutionGroup - 1;
  if (group < 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) LoadStages<T, kN, kTaps>(p, base);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    ConvolvePatches<T, Out, kN, kTaps>(p, base, group);
  }
#endif
}

}  // namespace wan::sm90
