#include "engine/device/library_defaults.h"

#include <ATen/Context.h>

namespace wan {

void ReplaceLibraryDefaults() {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setSDPUseCuDNN(false);
}

}  // namespace wan
