// Wrappers for more sm_90a instructions, used by the kernels that multiply 8-bit inputs: products,
// and copies of matrices to and from shared memory. Device code only.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace wan::sm90 {

// Copies the box at coordinates (c0, c1) of a matrix to shared memory, and counts its bytes at the
// barrier.
__device__ __forceinline__ void LoadBox2(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                         int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1)
      : "memory");
}

// Copies as LoadBox2 does, to every block of the cluster whose bit in `blocks` is set: to the
// address `to` and the barrier `barrier` of each block.
__device__ __forceinline__ void LoadBox2InCluster(uint32_t to, const CUtensorMap* map,
                                                  uint32_t barrier, int c0, int c1,
                                                  uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "h"(blocks)
      : "memory");
}

// Copies `bytes` to shared memory and counts them at the barrier. Both addresses and the number are
// multiples of 16.
__device__ __forceinline__ void LoadBytes(uint32_t to, const void* from, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Writes a box from shared memory to a matrix, except the part of the box beyond the matrix.
__device__ __forceinline__ void StoreBox2(const CUtensorMap* map, uint32_t from, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(c0), "r"(c1)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until at most kGroups of this thread's stores still read shared memory.
template <int kGroups>
__device__ __forceinline__ void StoreWaitRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}

__device__ __forceinline__ void StoreWaitAll() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Makes shared memory that this thread has written visible to tensor copies that are issued later.
__device__ __forceinline__ void FenceForCopies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A warp writes four 8 x 8 matrices of 16-bit values; lane i gives the address of a row of 16
// bytes.
__device__ __forceinline__ void StoreMatrices(uint32_t to, const uint32_t (&v)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
               : "memory");
}

#define WAN_REGISTERS_8(c, d, i) \
  c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define WAN_REGISTERS_32(c, d, i)                                                        \
  WAN_REGISTERS_8(c, d, i), WAN_REGISTERS_8(c, d, i + 8), WAN_REGISTERS_8(c, d, i + 16), \
      WAN_REGISTERS_8(c, d, i + 24)

#define WAN_NAMES_64                                                            \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63"

// d[64 x 128] (+)= a[64 x 32] * b[128 x 32]^T in e4m3, both in shared memory. For every eight
// columns of d, a thread holds two neighbours in one row and two in the row eight below.
__device__ __forceinline__ void Product64x128(float (&d)[64], uint64_t a, uint64_t b,
                                              int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" WAN_NAMES_64
      "}, %64, %65, p, 1, 1;\n"
      "}\n"
      : WAN_REGISTERS_32("+f", d, 0), WAN_REGISTERS_32("+f", d, 32)
      : "l"(a), "l"(b), "r"(accumulate));
}

// Computes the product above in signed 8-bit integers.
__device__ __forceinline__ void Product64x128(int (&d)[64], uint64_t a, uint64_t b,
                                              int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" WAN_NAMES_64
      "}, %64, %65, p;\n"
      "}\n"
      : WAN_REGISTERS_32("+r", d, 0), WAN_REGISTERS_32("+r", d, 32)
      : "l"(a), "l"(b), "r"(accumulate));
}

// Computes the product above in unsigned 8-bit integers, with `a` in registers. Of every 16 columns
// of `a`, a thread's register holds the two pairs of columns whose columns of d the thread also
// holds.
__device__ __forceinline__ void Product64x128(int (&d)[64], const uint32_t (&a)[4], uint64_t b,
                                              int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.u8 {" WAN_NAMES_64
      "}, {%64, %65, %66, %67}, %68, p;\n"
      "}\n"
      : WAN_REGISTERS_32("+r", d, 0), WAN_REGISTERS_32("+r", d, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

#undef WAN_NAMES_64
#undef WAN_REGISTERS_32
#undef WAN_REGISTERS_8

}  // namespace wan::sm90
