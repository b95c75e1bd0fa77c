#include "engine/ops/cuda_ops.h"

namespace wan {

CudaOps& GetCudaOps() {
  static CudaOps ops;
  return ops;
}

}  // namespace wan
