// A kernel that breaks the context of its process, as a damaged card or an illegal address does.
#include <cuda_runtime_api.h>

#include "tests/gpu/trap.h"

namespace wan {
namespace {

__global__ void TrapKernel() { __trap(); }

}  // namespace

bool LaunchTrap(int device) {
  if (cudaSetDevice(device) != cudaSuccess) return false;
  TrapKernel<<<1, 1>>>();
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace wan
