// Wrappers for the sm_90a instructions that attention_sm90.cu and convolution_sm90.cuh use:
// barriers in shared memory, TMA copies and warp-group products. This header can only be included
// in device code.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace wan::sm90 {

// Addresses in shared memory have 32 bits, as the instructions expect.
__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Returns the address at the same offset in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ uint32_t ClusterAddress(uint32_t address, uint32_t rank) {
  uint32_t result;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
  return result;
}

// A phase of the barrier ends after `arrivals` arrivals and the bytes that they announced.
__device__ __forceinline__ void BarrierInit(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ __forceinline__ void BarrierInitFence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void BarrierArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at a barrier of any block of the cluster; pass an address from ClusterAddress.
__device__ __forceinline__ void BarrierArriveInCluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier and announces `bytes` that copies will write.
__device__ __forceinline__ void BarrierExpect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Waits until the phase of this parity ends. A new barrier is in phase 0; waiting for parity 1
// returns at once.
__device__ __forceinline__ void BarrierWait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Synchronizes all threads of the cluster and makes their earlier writes to shared memory visible.
__device__ __forceinline__ void ClusterSync() {
  asm volatile(
      "barrier.cluster.arrive.aligned;\n"
      "barrier.cluster.wait.aligned;\n" ::
          : "memory");
}

// Named barriers of a block, for kThreads threads that synchronize or arrive.
template <int kThreads>
__device__ __forceinline__ void NamedSync(int number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}

template <int kThreads>
__device__ __forceinline__ void NamedArrive(int number) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}

// Copies the box at coordinates (c0, c1, c2, c3) of a 4D tensor to shared memory, and counts its
// bytes at the barrier.
__device__ __forceinline__ void LoadBox(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                        int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}

// Copies the box to every block of the cluster whose bit in `blocks` is set: to the address `to`
// and the barrier `barrier` of each block.
__device__ __forceinline__ void LoadBoxInCluster(uint32_t to, const CUtensorMap* map,
                                                 uint32_t barrier, int c0, int c1, int c2, int c3,
                                                 uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(blocks)
      : "memory");
}

// Makes the descriptor of a bf16 matrix in shared memory, whose rows of 128 bytes TMA has swizzled.
// Groups of eight rows are 1024 bytes apart; `columns_apart` is the distance between blocks of 64
// columns, used only if the product reads along rows.
__device__ __forceinline__ uint64_t MatrixAt(uint32_t address, uint32_t columns_apart) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kRowsApart = 1024;
  return kSwizzle128 | (kRowsApart >> 4 << 32) | (uint64_t{columns_apart >> 4} << 16) |
         ((address & 0x3FFFF) >> 4);
}

// Returns the number to add to a descriptor from MatrixAt to advance it by `bytes`.
__device__ __forceinline__ constexpr uint64_t MatrixStep(uint32_t bytes) { return bytes >> 4; }

// Call ProductFence before the first product that uses registers written by other instructions.
__device__ __forceinline__ void ProductFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void ProductCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kGroups committed groups of products are incomplete.
template <int kGroups>
__device__ __forceinline__ void ProductWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

#define WAN_REGISTERS_8(d, i)                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WAN_REGISTERS_64(d)                                                                     \
  WAN_REGISTERS_8(d, 0), WAN_REGISTERS_8(d, 8), WAN_REGISTERS_8(d, 16), WAN_REGISTERS_8(d, 24), \
      WAN_REGISTERS_8(d, 32), WAN_REGISTERS_8(d, 40), WAN_REGISTERS_8(d, 48),                   \
      WAN_REGISTERS_8(d, 56)
#define WAN_REGISTERS_88(d) \
  WAN_REGISTERS_64(d), WAN_REGISTERS_8(d, 64), WAN_REGISTERS_8(d, 72), WAN_REGISTERS_8(d, 80)

// Computes d[64 x 176] (+)= a[64 x 16] * b[176 x 16]^T, with a and b in shared memory. For every
// eight columns of d, a thread holds two neighbours in one row and two in the row eight below.
__device__ __forceinline__ void Product64x176(float (&d)[88], uint64_t a, uint64_t b,
                                              int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %90, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n176k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "
      "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87"
      "}, %88, %89, p, 1, 1, 0, 0;\n"
      "}\n"
      : WAN_REGISTERS_88(d)
      : "l"(a), "l"(b), "r"(accumulate));
}

// Computes d[64 x 128] (+)= a[64 x 16] * b[16 x 128]. `a` is in registers as pairs of bf16, laid
// out as d is; `b` is in shared memory and is read along its rows.
__device__ __forceinline__ void Product64x128(float (&d)[64], const uint32_t (&a)[4], uint64_t b,
                                              int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63"
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
      "}\n"
      : WAN_REGISTERS_64(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

#undef WAN_REGISTERS_88
#undef WAN_REGISTERS_64
#undef WAN_REGISTERS_8

}  // namespace wan::sm90
