// The softmax of attention_sm90.cu. The code works on 64 rows of scores in a warp group's
// registers, one tile of keys at a time.
//
// The tensor cores wait for this code, and each of a GPU's warp schedulers has only one warp that
// runs it. So the code must have few instructions, and none that depends on the one directly before
// it. The result of an exponential is ready after about 30 cycles, but the next exponential can
// start after 8. So a result is used only some exponentials later. The compiler would move the use
// closer again, but it moves nothing across a `pmevent`, an instruction that otherwise only raises
// a profiler event.
#pragma once

#include <cstdint>

namespace wan::sm90 {

constexpr int kKeys = 176;          // keys in a tile
constexpr int kScores = kKeys / 2;  // scores that a thread has in a tile
constexpr int kFours =
    kScores / 4;  // groups of four scores, each with two neighbours in both of the thread's rows
constexpr int kSteps = kKeys / 16;   // products with the values for each tile
constexpr int kOutputs = 64;         // outputs that a thread has
constexpr int kBlocks = kFours / 2;  // scheduling barriers: one per eight exponentials
constexpr int kLag = 3;              // groups of four scores between an exponential and its use

__device__ __forceinline__ void SchedulingBarrier() { asm volatile("pmevent 1;" ::: "memory"); }

// Makes the compiler assume that the registers change here, as they do while products run.
template <int kCount>
__device__ __forceinline__ void Pin(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

template <int kCount>
__device__ __forceinline__ void Pin(uint32_t (&values)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(values[i][j])::"memory");
  }
}

__device__ __forceinline__ float Exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ uint32_t PackBf16(float low, float high) {
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

// Each row is shared by four threads.
__device__ __forceinline__ float RowMaximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float RowSum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// The class works on registers of the caller: the scores, which become exponentials; the
// probabilities in bf16, laid out for the product with the values; and the outputs so far. In
// members with two elements, [0] belongs to the thread's upper row and [1] to the row eight below.
class OnlineSoftmax {
 public:
  // Scores are multiplied by `scale`, which includes log2(e).
  __device__ __forceinline__ OnlineSoftmax(float (&scores)[kScores],
                                           uint32_t (&probabilities)[kSteps][4],
                                           float (&out)[kOutputs], float scale)
      : scores_(scores), probabilities_(probabilities), out_(out), scale_(scale) {}

  // Computes the probabilities of the first tile, when there is no output to rescale yet.
  __device__ __forceinline__ void First() {
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

  // Does part `slot` of kSlots of the search for the maximum of a later tile. Call the parts in
  // order, between products.
  template <int kSlots>
  __device__ __forceinline__ void SearchMaximum(int slot) {
#pragma unroll
    for (int i = slot * kFours / kSlots; i < (slot + 1) * kFours / kSlots; ++i) {
      // Compares the scores as integers: non-negative floats keep their order, and a GPU compares
      // three integers in one instruction.
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int x = __float_as_int(scores_[4 * i + 2 * row]);
        const int y = __float_as_int(scores_[4 * i + 2 * row + 1]);
        int& found = largest_[row][i % 2];
        found = i < 2 ? max(x, y) : __vimax3_s32(found, x, y);
      }
    }
#pragma unroll
    for (int i = 0; i < kScores; ++i) asm volatile("" : "+f"(scores_[i]));
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      asm volatile("" : "+r"(largest_[row][0]), "+r"(largest_[row][1]));
    }
    SchedulingBarrier();
  }

  // Call it after the last part of the search. Updates the rows' maxima, and the factor by which
  // earlier sums are multiplied.
  __device__ __forceinline__ void UpdateMaximum() {
    int largest[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) largest[row] = max(largest_[row][0], largest_[row][1]);
#pragma unroll
    for (int distance = 1; distance <= 2; ++distance) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        largest[row] = max(largest[row], __shfl_xor_sync(~0u, largest[row], distance));
      }
    }
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

  // Returns 1 / the sum of a row's exponentials. Call it after the last tile.
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
    scores_[4 * i] = fmaf(scores_[4 * i], scale_, -offset_[0]);
    scores_[4 * i + 1] = fmaf(scores_[4 * i + 1], scale_, -offset_[0]);
    scores_[4 * i + 2] = fmaf(scores_[4 * i + 2], scale_, -offset_[1]);
    scores_[4 * i + 3] = fmaf(scores_[4 * i + 3], scale_, -offset_[1]);
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

  template <bool kFirst>
  __device__ __forceinline__ void PinAll() {
#pragma unroll
    for (int i = 0; i < kScores; ++i) asm volatile("" : "+f"(scores_[i]));
    asm volatile("" : "+f"(sum_[0]), "+f"(sum_[1]), "+f"(odd_sum_[0]), "+f"(odd_sum_[1]));
    if (!kFirst) Pin(out_);
    Pin(probabilities_);
  }

  float (&scores_)[kScores];
  uint32_t (&probabilities_)[kSteps][4];
  float (&out_)[kOutputs];
  const float scale_;
  float maximum_[2], sum_[2], factor_[2];
  float offset_[2], odd_sum_[2];
  int largest_[2][2];
};

}  // namespace wan::sm90
