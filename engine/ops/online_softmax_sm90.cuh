// The softmax of attention_sm90.cu: scores and sums in fp32, probabilities in bf16.
#pragma once

#include <cstdint>

#include "engine/ops/softmax_sm90.cuh"

namespace wan::sm90 {

// The class works on registers of the caller: the scores, which become exponentials; the
// probabilities in bf16, laid out for the product with the values; and the outputs so far. In
// members with two elements, [0] belongs to the thread's upper row and [1] to the row eight below.
template <typename Tile>
class OnlineSoftmax {
 public:
  static constexpr int kScores = Tile::kScores;
  static constexpr int kFours = Tile::kFours;
  static constexpr int kSteps = Tile::kSteps;
  static constexpr int kBlocks = kFours / 2;  // scheduling barriers: one per eight exponentials

  // `scale`, which includes log2(e), is what scores are multiplied by.
  __device__ __forceinline__ OnlineSoftmax(float (&scores)[kScores],
                                           uint32_t (&probabilities)[kSteps][4],
                                           float (&out)[kOutputs], float scale)
      : scores_(scores), probabilities_(probabilities), out_(out), scale_(scale) {}

  // Computes the probabilities of the first tile, when there is no output to rescale yet. Only the
  // first `valid` keys of the tile count.
  __device__ __forceinline__ void First(int valid) {
    MaskBeyond(scores_, valid, -INFINITY);
    float low[2] = {scores_[0], scores_[2]};
    float high[2] = {scores_[1], scores_[3]};
#pragma unroll
    for (int i = 4; i < kScores; i += 4) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        low[row] = fmaxf(low[row], scores_[i + 2 * row]);
        high[row] = fmaxf(high[row], scores_[i + 2 * row + 1]);
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      maximum_[row] = RowMaximum(fmaxf(low[row], high[row]));
      sum_[row] = 0;
    }
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

  // Call UpdateMaximum after the last part of the search. Updates the rows' maxima, and the factor
  // by which earlier sums are multiplied.
  __device__ __forceinline__ void UpdateMaximum() {
    int largest[2];
    LargestOfRows(largest_, largest);
    float maximum[2] = {__int_as_float(largest[0]), __int_as_float(largest[1])};
    // If all scores of a row are negative, the order of their integers is reversed.
    if (__any_sync(~0u, min(largest[0], largest[1]) < 0)) {
      float low[2] = {scores_[0], scores_[2]};
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
        low[0] = fmaxf(low[0], fmaxf(scores_[i], scores_[i + 1]));
        low[1] = fmaxf(low[1], fmaxf(scores_[i + 2], scores_[i + 3]));
      }
      maximum[0] = RowMaximum(low[0]);
      maximum[1] = RowMaximum(low[1]);
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      maximum[row] = fmaxf(maximum_[row], maximum[row]);
      factor_[row] = Exp2((maximum_[row] - maximum[row]) * scale_);
      sum_[row] *= factor_[row];
      maximum_[row] = maximum[row];
    }
  }

  // Computes the tile's probabilities and multiplies the outputs so far by the new factor. No
  // product may be using probabilities or outputs at that time.
  __device__ __forceinline__ void Next() { Exponentials</*kFirst=*/false>(); }

  // Returns 1 / the sum of a row's exponentials. Call Inverse after the last tile.
  __device__ __forceinline__ float Inverse(int row) const { return 1.f / RowSum(sum_[row]); }

 private:
  template <bool kFirst>
  __device__ __forceinline__ void Exponentials() {
    offset_[0] = maximum_[0] * scale_;
    offset_[1] = maximum_[1] * scale_;
    odd_sum_[0] = odd_sum_[1] = 0;
    Arguments(0);
    Arguments(1);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 8 * block; i < 8 * block + 8; ++i) scores_[i] = Exp2(scores_[i]);
#pragma unroll
      for (int i = 2 * block; i < 2 * block + 2; ++i) {
        if (i + 2 < kFours) Arguments(i + 2);
        if (i >= kLag) Use(i - kLag);
        if (!kFirst && 4 * i < kOutputs) Scale(i);
      }
      PinAll<kFirst>();
      SchedulingBarrier();
    }
#pragma unroll
    for (int i = kFours - kLag; i < kFours; ++i) Use(i);
    sum_[0] += odd_sum_[0];
    sum_[1] += odd_sum_[1];
  }

  __device__ __forceinline__ void Arguments(int i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      scores_[4 * i + k] = fmaf(scores_[4 * i + k], scale_, -offset_[k / 2]);
    }
  }

  __device__ __forceinline__ void Use(int i) {
    sum_[0] += scores_[4 * i];
    odd_sum_[0] += scores_[4 * i + 1];
    sum_[1] += scores_[4 * i + 2];
    odd_sum_[1] += scores_[4 * i + 3];
    probabilities_[i / 2][i % 2 * 2] = PackBf16(scores_[4 * i], scores_[4 * i + 1]);
    probabilities_[i / 2][i % 2 * 2 + 1] = PackBf16(scores_[4 * i + 2], scores_[4 * i + 3]);
  }

  __device__ __forceinline__ void Scale(int i) {
    out_[4 * i] *= factor_[0];
    out_[4 * i + 1] *= factor_[0];
    out_[4 * i + 2] *= factor_[1];
    out_[4 * i + 3] *= factor_[1];
  }

  __device__ __forceinline__ void PinScores() {
#pragma unroll
    for (int i = 0; i < kScores; ++i) asm volatile("" : "+f"(scores_[i]));
  }

  template <bool kFirst>
  __device__ __forceinline__ void PinAll() {
    PinScores();
    asm volatile("" : "+f"(sum_[0]), "+f"(sum_[1]), "+f"(odd_sum_[0]), "+f"(odd_sum_[1]));
    if (!kFirst) Pin(out_);
    Pin(probabilities_);
  }

  float (&scores_)[kScores];
  uint32_t (&probabilities_)[kSteps][4];
  float (&out_)[kOutputs];
  float scale_;
  float maximum_[2], sum_[2], factor_[2];
  float offset_[2], odd_sum_[2];
  int largest_[2][2];
};

}  // namespace wan::sm90
