#include "engine/device/product_precision.h"

#include <ATen/Context.h>

namespace wan {

void AddProductsInFp32() {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setAllowFP16ReductionCuBLAS(false);
}

}  // namespace wan
