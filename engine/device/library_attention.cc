#include "engine/device/library_attention.h"

#include <ATen/Context.h>

namespace wan {

void ChooseAttentionWithoutPlans() { at::globalContext().setSDPUseCuDNN(false); }

}  // namespace wan
