// The driver's function that describes a tensor to the copies of a Hopper GPU. The plug-in is not
// linked with the driver, so it is asked for. For the files of kernels for compute capability 9.0.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace wan::sm90 {

// cuTensorMapEncodeTiled.
using EncodeTensorMap = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                     const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                     const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// Returns the function, or null where the driver has none. Throws c10::Error if the driver cannot
// be asked. Any thread may call it.
inline EncodeTensorMap FindEncodeTensorMap() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  C10_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                  cudaEnableDefault, &result));
  return reinterpret_cast<EncodeTensorMap>(function);
}

}  // namespace wan::sm90
