// Finds the driver function that makes TMA descriptors. The plug-in is not linked with the driver,
// so FindEncodeTensorMap looks the function up at run time. Only kernels for compute capability 9.0
// need this function.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace wan::sm90 {

// The type of the driver's function cuTensorMapEncodeTiled.
using EncodeTensorMap = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                     const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                     const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// Returns the driver's function, or null if the driver does not have it. Throws c10::Error if the
// lookup fails. Any thread may call it.
inline EncodeTensorMap FindEncodeTensorMap() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  C10_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                  cudaEnableDefault, &result));
  return reinterpret_cast<EncodeTensorMap>(function);
}

}  // namespace wan::sm90
