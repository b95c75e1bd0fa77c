// The softmax of rounded_attention_sm90.cu: scores and probabilities in integers.
//
// For each row and tile, the class rounds the probabilities to 0..255 in a unit of their own, so
// that a tile with small scores loses no precision. So each tile has its own product with the
// values, which is added to the outputs so far in fp32. Both factors are unsigned integers of 8
// bits, so the sums are integers from 0 to 2^23 - 1. An integer in this range has the same bits as
// the float that is 2^-149 times as large, because floats below 2^-126 have no exponent. So outputs
// are kept in units of 2^-149, and sums need no conversion.
#pragma once

#include <cstdint>

#include "engine/ops/rounded_attention.h"
#include "engine/ops/softmax_sm90.cuh"

namespace wan::sm90 {

// The class works on registers of the caller: the scores, which become exponentials (their bits);
// the probabilities, laid out for the product with the values; the sums of a tile; and the outputs
// so far. In members with two elements, [0] belongs to the thread's upper row and [1] to the row
// eight below.
template <typename Tile>
class RoundedSoftmax {
 public:
  static constexpr int kScores = Tile::kScores;
  static constexpr int kFours = Tile::kFours;
  static constexpr int kSteps = Tile::kSteps;
  // Each group of four outputs is added next to one group of four exponentials, so their numbers
  // must be equal.
  static_assert(4 * kFours == kOutputs);

  __device__ __forceinline__ RoundedSoftmax(int (&scores)[kScores],
                                            uint32_t (&probabilities)[kSteps][4],
                                            int (&sums)[kOutputs], float (&out)[kOutputs])
      : scores_(scores), probabilities_(probabilities), sums_(sums), out_(out) {}

  // Sets the factors, which include log2(e), of the next tile's scores.
  __device__ __forceinline__ void SetScale(float upper, float lower) {
    scale_[0] = upper;
    scale_[1] = lower;
  }

  // Computes the probabilities of the first tile, of which only the first `valid` keys count.
  __device__ __forceinline__ void First(int valid) {
    MaskBeyond(scores_, valid, kLowest);
    first_valid_ = valid - 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      out_[i] = 0;
      sums_[i] = 0;
    }
    SearchMaximum<1, 0>();
    Update</*kFirst=*/true>();
    Exponentials</*kFirst=*/true>();
  }

  // Searches a later tile for its maximum: part `slot` of kSlots. Call the parts in order, between
  // products.
  template <int kSlots, int slot>
  __device__ __forceinline__ void SearchMaximum() {
    SearchLargest<kSlots, slot>(scores_, largest_);
    PinScores();
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      asm volatile("" : "+r"(largest_[row][0]), "+r"(largest_[row][1]));
    }
    SchedulingBarrier();
  }

  // Call UpdateMaximum after the last part of the search. Decides the unit of the tile's
  // probabilities.
  __device__ __forceinline__ void UpdateMaximum() { Update</*kFirst=*/false>(); }

  // Computes the tile's probabilities, and adds the previous tile's sums to the outputs. No product
  // may be using probabilities or sums at that time.
  __device__ __forceinline__ void Next() { Exponentials</*kFirst=*/false>(); }

  // Adds the last tile's sums, and turns the outputs into mean codes of the values for each row.
  __device__ __forceinline__ void Finish() {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      out_[i] = __fmaf_rn(out_[i], factor_[i / 2 % 2], __int_as_float(sums_[i]));
    }
    const float inverse[2] = {1.f / RowSum(sum_[0]), 1.f / RowSum(sum_[1])};
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) out_[i] = out_[i] * 0x1p75f * 0x1p74f * inverse[i / 2 % 2];
  }

 private:
  // 1.5 * 2^23: adding an integer to this float changes its bits by the same integer.
  static constexpr float kMagic = 12582912.f;
  static constexpr int kMagicBits = 0x4B400000;
  // A score below all others that is still exact when it is added to kMagicBits.
  static constexpr int kLowest = -4000000;
  static constexpr float kLog2Of255 = 7.99435343685886f;

  template <bool kFirst>
  __device__ __forceinline__ void Update() {
    int largest[2];
    LargestOfRows(largest_, largest);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float of_tile = __int2float_rn(largest[row]) * scale_[row];
      maximum_[row] = kFirst ? of_tile : fmaxf(maximum_[row], of_tile);
      // The limit keeps a tile far below the row's maximum, which hardly counts, from making the
      // factor overflow. max.NaN keeps NaN, which fmaxf would drop.
      float unit;
      asm("max.NaN.f32 %0, %1, %2;"
          : "=f"(unit)
          : "f"(of_tile), "f"(maximum_[row] - kRoundedDepth));
      before_[row] = kFirst ? 0.f : factor_[row];
      factor_[row] = kFirst ? 0.f : Exp2(unit_[row] - unit);
      unit_[row] = unit;
    }
  }

  template <bool kFirst>
  __device__ __forceinline__ void Exponentials() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      offset_[row] = fmaf(kMagic, scale_[row], unit_[row] - kLog2Of255);
      total_[row] = 0;
    }
    Arguments<kFirst>(0);
    Arguments<kFirst>(1);
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
#pragma unroll
      for (int k = 4 * i; k < 4 * i + 4; ++k) {
        scores_[k] = __float_as_int(Exp2(__int_as_float(scores_[k])));
      }
      if (i + 2 < kFours) Arguments<kFirst>(i + 2);
      if (i >= kLag) Use(i - kLag);
      if (!kFirst) Add(i);
      PinScores();
      asm volatile("" : "+r"(total_[0]), "+r"(total_[1]));
      if (!kFirst) Pin(out_);
      Pin(probabilities_);
      SchedulingBarrier();
    }
#pragma unroll
    for (int i = kFours - kLag; i < kFours; ++i) Use(i);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float total = __int2float_rn(total_[row]);
      sum_[row] = kFirst ? total : fmaf(sum_[row], factor_[row], total);
    }
  }

  template <bool kFirst>
  __device__ __forceinline__ void Arguments(int i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float score = __int_as_float(scores_[4 * i + k] + kMagicBits);
      const float argument = fmaf(score, scale_[k / 2], -offset_[k / 2]);
      // Mask again: a row's scale may be so small that kLowest is not low enough.
      const bool counts = !kFirst || 8 * i + k % 2 < first_valid_;
      scores_[4 * i + k] = __float_as_int(counts ? argument : -INFINITY);
    }
  }

  // Rounds the exponentials, and packs two groups of four for the product. The values have the same
  // order of keys.
  __device__ __forceinline__ void Use(int i) {
    if (i % 2 == 1) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        uint32_t& packed = probabilities_[i / 4][i % 4 / 2 * 2 + row];
        // The compiler makes one instruction of two conversions and a packing.
        asm("{\n"
            ".reg .u32 low;\n"
            "cvt.pack.sat.u8.s32.b32 low, %2, %1, 0;\n"
            "cvt.pack.sat.u8.s32.b32 %0, %4, %3, low;\n"
            "}\n"
            : "=r"(packed)
            : "r"(Rounded(4 * i + 2 * row)), "r"(Rounded(4 * i + 2 * row + 1)),
              "r"(Rounded(4 * i + 2 * row - 4)), "r"(Rounded(4 * i + 2 * row - 3)));
        total_[row] = __dp4a(packed, 0x01010101u, total_[row]);
      }
    }
  }

  __device__ __forceinline__ int Rounded(int i) const {
    return __float2int_rn(__int_as_float(scores_[i]));
  }

  __device__ __forceinline__ void Add(int i) {
#pragma unroll
    for (int k = 4 * i; k < 4 * i + 4; ++k) {
      out_[k] = __fmaf_rn(out_[k], before_[k / 2 % 2], __int_as_float(sums_[k]));
    }
  }

  __device__ __forceinline__ void PinScores() {
#pragma unroll
    for (int i = 0; i < kScores; ++i) asm volatile("" : "+r"(scores_[i]));
  }

  int (&scores_)[kScores];
  uint32_t (&probabilities_)[kSteps][4];
  int (&sums_)[kOutputs];
  float (&out_)[kOutputs];
  float scale_[2];
  int first_valid_;
  // For each row: the maximum, the unit of the probabilities as a power of two, and the factors by
  // which the latest tile (factor_) and the tile before (before_) changed the unit.
  float maximum_[2], unit_[2], factor_[2], before_[2];
  float sum_[2], offset_[2];
  uint32_t total_[2];
  int largest_[2][2];
};

}  // namespace wan::sm90
