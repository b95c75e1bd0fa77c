// Warp-group products for convolution_sm90.cuh. Both matrices are in shared memory, and sums are
// fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace wan::sm90 {

// Product<T, N>::Add computes d[64 x N] = a * b^T, plus d if `accumulate` is not 0, over 32 bytes
// of each row of a (64 rows) and of b (N rows). For every eight columns of d, a thread holds two
// neighbours in one row and two in the row eight below.
template <typename T, int kColumns>
struct Product;

#define WAN_REGISTERS_8(d, i)                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WAN_REGISTERS_32(d, i)                                                  \
  WAN_REGISTERS_8(d, i), WAN_REGISTERS_8(d, i + 8), WAN_REGISTERS_8(d, i + 16), \
      WAN_REGISTERS_8(d, i + 24)
#define WAN_REGISTERS_48(d) WAN_REGISTERS_32(d, 0), WAN_REGISTERS_8(d, 32), WAN_REGISTERS_8(d, 40)
#define WAN_REGISTERS_64(d) WAN_REGISTERS_32(d, 0), WAN_REGISTERS_32(d, 32)
#define WAN_REGISTERS_96(d) WAN_REGISTERS_64(d), WAN_REGISTERS_32(d, 64)
#define WAN_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WAN_NAMES_48                                                                           \
  WAN_NAMES_8                                                                                  \
  ", %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
  "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, " \
  "%44, %45, %46, %47"
#define WAN_NAMES_64 \
  WAN_NAMES_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WAN_NAMES_96                                                                             \
  WAN_NAMES_64                                                                                   \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

#define WAN_PRODUCT(T, columns, registers, shape, tail, a_at, b_at, accumulate_at)               \
  template <>                                                                                    \
  struct Product<T, columns> {                                                                   \
    static __device__ __forceinline__ void Add(float (&d)[registers], uint64_t a, uint64_t b,    \
                                               int accumulate) {                                 \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" accumulate_at                            \
                   ", 0;\n"                                                                      \
                   "wgmma.mma_async.sync.aligned.m64n" #columns shape " {" WAN_NAMES_##registers \
                   "}, %" a_at ", %" b_at ", p, 1, 1" tail ";\n}\n"                              \
                   : WAN_REGISTERS_##registers(d)                                                \
                   : "l"(a), "l"(b), "r"(accumulate));                                           \
    }                                                                                            \
  };
#define WAN_PRODUCTS(T, shape, tail)                                                             \
  WAN_PRODUCT(T, 96, 48, shape, tail, "48", "49", "50")                                          \
  WAN_PRODUCT(T, 128, 64, shape, tail, "64", "65", "66")                                         \
  WAN_PRODUCT(T, 192, 96, shape, tail, "96", "97", "98")                                         \
  template <>                                                                                    \
  struct Product<T, 16> {                                                                        \
    static __device__ __forceinline__ void Add(float (&d)[8], uint64_t a, uint64_t b,            \
                                               int accumulate) {                                 \
      asm volatile(                                                                              \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"                                           \
          "wgmma.mma_async.sync.aligned.m64n16" shape " {" WAN_NAMES_8 "}, %8, %9, p, 1, 1" tail \
          ";\n}\n"                                                                               \
          : WAN_REGISTERS_8(d, 0)                                                                \
          : "l"(a), "l"(b), "r"(accumulate));                                                    \
    }                                                                                            \
  };

WAN_PRODUCTS(__nv_bfloat16, "k16.f32.bf16.bf16", ", 0, 0")
WAN_PRODUCTS(__half, "k16.f32.f16.f16", ", 0, 0")
WAN_PRODUCTS(float, "k8.f32.tf32.tf32", "")

#undef WAN_PRODUCTS
#undef WAN_PRODUCT
#undef WAN_NAMES_96
#undef WAN_NAMES_64
#undef WAN_NAMES_48
#undef WAN_NAMES_8
#undef WAN_REGISTERS_96
#undef WAN_REGISTERS_64
#undef WAN_REGISTERS_48
#undef WAN_REGISTERS_32
#undef WAN_REGISTERS_8

}  // namespace wan::sm90
