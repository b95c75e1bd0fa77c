// The softmax of attention_sm90.cuh. The code works on 64 rows of scores in a warp group's
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
#include <type_traits>

namespace wan::sm90 {

constexpr int kOutputs = 64;  // outputs per thread
constexpr int kLag = 3;       // groups of four between an exponential and its use

// The scores of a tile of keys: fp32, or 32-bit integers that are multiplied by a scale of the row
// and the tile.
template <typename ScoreType, int kKeysOfTile>
struct ScoreTile {
  using Score = ScoreType;
  static constexpr bool kIntegers = std::is_same_v<Score, int>;
  static constexpr int kKeys = kKeysOfTile;
  static constexpr int kScores = kKeys / 2;  // per thread
  // Groups of four scores: two neighbours in each of a thread's two rows.
  static constexpr int kFours = kScores / 4;
  static constexpr int kSteps = kKeys / 16;   // products with the values
  static constexpr int kBlocks = kFours / 2;  // scheduling barriers: one per eight exponentials
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

// The class works on registers of the caller: the scores, which become exponentials (of integers,
// their bits); the probabilities in bf16, laid out for the product with the values; and the outputs
// so far. In members with two elements, [0] belongs to the thread's upper row and [1] to the row
// eight below.
template <typename Tile>
class OnlineSoftmax {
 public:
  using Score = typename Tile::Score;
  static constexpr int kScores = Tile::kScores;
  static constexpr int kFours = Tile::kFours;
  static constexpr int kSteps = Tile::kSteps;
  static constexpr int kBlocks = Tile::kBlocks;

  __device__ __forceinline__ OnlineSoftmax(Score (&scores)[kScores],
                                           uint32_t (&probabilities)[kSteps][4],
                                           float (&out)[kOutputs])
      : scores_(scores), probabilities_(probabilities), out_(out) {}

  // Sets what the next tile's scores are multiplied by, which includes log2(e). Scores of fp32 have
  // one scale for all tiles and rows.
  __device__ __forceinline__ void SetScale(float upper, float lower) {
    scale_[0] = upper;
    scale_[1] = lower;
  }

  // Computes the probabilities of the first tile, when there is no output to rescale yet. Only its
  // first `valid` keys count.
  __device__ __forceinline__ void First(int valid) {
    const int column = 2 * (static_cast<int>(threadIdx.x) % 4);
    if (valid < Tile::kKeys) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        if (8 * (i / 4) + column + i % 2 >= valid) scores_[i] = Lowest();
      }
    }
    Score low[2] = {scores_[0], scores_[2]};
    Score high[2] = {scores_[1], scores_[3]};
#pragma unroll
    for (int i = 4; i < kScores; i += 4) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        low[row] = max(low[row], scores_[i + 2 * row]);
        high[row] = max(high[row], scores_[i + 2 * row + 1]);
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float largest = RowMaximum(static_cast<float>(max(low[row], high[row])));
      maximum_[row] = Tile::kIntegers ? largest * scale_[row] : largest;
      sum_[row] = 0;
    }
    first_valid_ = valid - column;
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
        const int x = Bits(scores_[4 * i + 2 * row]);
        const int y = Bits(scores_[4 * i + 2 * row + 1]);
        int& found = largest_[row][i % 2];
        found = i < 2 ? max(x, y) : __vimax3_s32(found, x, y);
      }
    }
    PinScores();
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
    float maximum[2];
    if constexpr (Tile::kIntegers) {
      // The tiles' scales differ, so their maxima are compared after the multiplication.
#pragma unroll
      for (int row = 0; row < 2; ++row) maximum[row] = __int2float_rn(largest[row]) * scale_[row];
    } else {
#pragma unroll
      for (int row = 0; row < 2; ++row) maximum[row] = __int_as_float(largest[row]);
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
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      maximum[row] = fmaxf(maximum_[row], maximum[row]);
      const float fallen = maximum_[row] - maximum[row];
      factor_[row] = Exp2(Tile::kIntegers ? fallen : fallen * scale_[row]);
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
  // 1.5 * 2^23: the bits of a float near it are the integer that it holds, plus constant bits.
  static constexpr float kMagic = 12582912.f;
  static constexpr int kMagicBits = 0x4B400000;

  // A score below all others; as an integer it is still exact when it is added to kMagicBits.
  static __device__ __forceinline__ Score Lowest() {
    if constexpr (Tile::kIntegers) {
      return -4000000;
    } else {
      return -INFINITY;
    }
  }
  static __device__ __forceinline__ int Bits(int score) { return score; }
  static __device__ __forceinline__ int Bits(float score) { return __float_as_int(score); }
  __device__ __forceinline__ float At(int i) const { return __int_as_float(Bits(scores_[i])); }
  __device__ __forceinline__ void Set(int i, float value) {
    if constexpr (Tile::kIntegers) {
      scores_[i] = __float_as_int(value);
    } else {
      scores_[i] = value;
    }
  }

  template <bool kFirst>
  __device__ __forceinline__ void Exponentials() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      offset_[row] =
          Tile::kIntegers ? fmaf(kMagic, scale_[row], maximum_[row]) : maximum_[row] * scale_[row];
    }
    odd_sum_[0] = odd_sum_[1] = 0;
    Arguments<kFirst>(0);
    Arguments<kFirst>(1);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 8 * block; i < 8 * block + 8; ++i) Set(i, Exp2(At(i)));
#pragma unroll
      for (int i = 2 * block; i < 2 * block + 2; ++i) {
        if (i + 2 < kFours) Arguments<kFirst>(i + 2);
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

  template <bool kFirst>
  __device__ __forceinline__ void Arguments(int i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float score =
          Tile::kIntegers ? __int_as_float(Bits(scores_[4 * i + k]) + kMagicBits) : At(4 * i + k);
      const float argument = fmaf(score, scale_[k / 2], -offset_[k / 2]);
      // A row's scale may be so small that Lowest() is not low enough.
      const bool counts = !kFirst || !Tile::kIntegers || 8 * i + k % 2 < first_valid_;
      Set(4 * i + k, counts ? argument : -INFINITY);
    }
  }

  __device__ __forceinline__ void Use(int i) {
    sum_[0] += At(4 * i);
    odd_sum_[0] += At(4 * i + 1);
    sum_[1] += At(4 * i + 2);
    odd_sum_[1] += At(4 * i + 3);
    probabilities_[i / 2][i % 2 * 2] = PackBf16(At(4 * i), At(4 * i + 1));
    probabilities_[i / 2][i % 2 * 2 + 1] = PackBf16(At(4 * i + 2), At(4 * i + 3));
  }

  __device__ __forceinline__ void Scale(int i) {
    out_[4 * i] *= factor_[0];
    out_[4 * i + 1] *= factor_[0];
    out_[4 * i + 2] *= factor_[1];
    out_[4 * i + 3] *= factor_[1];
  }

  __device__ __forceinline__ void PinScores() {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      if constexpr (Tile::kIntegers) {
        asm volatile("" : "+r"(scores_[i]));
      } else {
        asm volatile("" : "+f"(scores_[i]));
      }
    }
  }

  template <bool kFirst>
  __device__ __forceinline__ void PinAll() {
    PinScores();
    asm volatile("" : "+f"(sum_[0]), "+f"(sum_[1]), "+f"(odd_sum_[0]), "+f"(odd_sum_[1]));
    if (!kFirst) Pin(out_);
    Pin(probabilities_);
  }

  Score (&scores_)[kScores];
  uint32_t (&probabilities_)[kSteps][4];
  float (&out_)[kOutputs];
  float scale_[2];
  int first_valid_;
  // The maxima are in scores, or with integers in scores times their scale.
  float maximum_[2], sum_[2], factor_[2];
  float offset_[2], odd_sum_[2];
  int largest_[2][2];
};

}  // namespace wan::sm90
