// The pieces of the softmax of attention (online_softmax_sm90.cuh, rounded_softmax_sm90.cuh). The
// softmax works on 64 rows of scores in a warp group's registers, one tile of keys at a time.
//
// The tensor cores wait for this code, and each of a GPU's warp schedulers has only one warp that
// runs it. So the code must have few instructions, and no instruction may depend on the previous
// one. The result of an exponential is ready after about 30 cycles, but the next exponential can
// start after 8 cycles. So a result is used only some exponentials later. The compiler would move
// the use closer again, so a `pmevent` separates the two: the compiler moves nothing across this
// instruction, which otherwise only raises a profiler event.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <utility>

namespace wan::sm90 {

constexpr int kOutputs = 64;  // outputs per thread
constexpr int kLag = 3;       // groups of four between an exponential and its use

// A tile of scores as a warp group holds it.
template <int kKeysOfTile>
struct ScoreTile {
  static constexpr int kScores = kKeysOfTile / 2;  // scores per thread
  // Groups of four scores: two neighbours in each of a thread's two rows.
  static constexpr int kFours = kScores / 4;
};

__device__ __forceinline__ void SchedulingBarrier() { asm volatile("pmevent 1;" ::: "memory"); }

// Makes the compiler assume that the registers change here, as they do while products run.
template <int kCount>
__device__ __forceinline__ void Pin(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

template <int kCount>
__device__ __forceinline__ void Pin(int (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(values[i])::"memory");
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

template <int number>
struct Constant {
  static constexpr int value = number;
};

template <typename Function, int... i>
__device__ __forceinline__ void CallWith(std::integer_sequence<int, i...>, const Function& f) {
  (f(Constant<i>{}), ...);
}

// Calls f with Constant<0> to Constant<kCount - 1>, one after the other.
template <int kCount, typename Function>
__device__ __forceinline__ void Unroll(const Function& f) {
  CallWith(std::make_integer_sequence<int, kCount>{}, f);
}

__device__ __forceinline__ int Bits(int value) { return value; }
__device__ __forceinline__ int Bits(float value) { return __float_as_int(value); }

// Gives all scores of keys from the `valid`th on the value `lowest`.
template <typename Score, int kScores>
__device__ __forceinline__ void MaskBeyond(Score (&scores)[kScores], int valid, Score lowest) {
  if (valid >= 2 * kScores) return;
  const int column = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    if (8 * (i / 4) + column + i % 2 >= valid) scores[i] = lowest;
  }
}

// Does part `slot` of kSlots of the search for the largest bits of each of a thread's two rows:
// call the parts in order, between products. Bits of integers and of floats that are not negative
// keep their order, and a GPU compares three integers in one instruction.
template <int kSlots, int slot, typename Score, int kScores>
__device__ __forceinline__ void SearchLargest(const Score (&scores)[kScores],
                                              int (&largest)[2][2]) {
  constexpr int kFours = kScores / 4;
#pragma unroll
  for (int i = slot * kFours / kSlots; i < (slot + 1) * kFours / kSlots; ++i) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int x = Bits(scores[4 * i + 2 * row]);
      const int y = Bits(scores[4 * i + 2 * row + 1]);
      int& found = largest[row][i % 2];
      found = i < 2 ? max(x, y) : __vimax3_s32(found, x, y);
    }
  }
}

// Returns the largest bits of a thread's rows, each of which it shares with three threads.
__device__ __forceinline__ void LargestOfRows(const int (&largest)[2][2], int (&of_row)[2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row) of_row[row] = max(largest[row][0], largest[row][1]);
#pragma unroll
  for (int distance = 1; distance <= 2; ++distance) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      of_row[row] = max(of_row[row], __shfl_xor_sync(~0u, of_row[row], distance));
    }
  }
}

}  // namespace wan::sm90
