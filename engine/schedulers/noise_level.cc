#include "engine/schedulers/noise_level.h"

#include <ATen/ops/scalar_tensor.h>

namespace wan {

float TorchLog(float x) { return at::scalar_tensor(x).log().item<float>(); }

float TorchExp(float x) { return at::scalar_tensor(x).exp().item<float>(); }

float TorchExpm1(float x) { return at::scalar_tensor(x).expm1().item<float>(); }

}  // namespace wan
