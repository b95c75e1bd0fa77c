#include "engine/ops/vae_cuda_ops.h"

namespace wan {

VaeCudaOps& GetVaeCudaOps() {
  static VaeCudaOps ops;
  return ops;
}

}  // namespace wan
