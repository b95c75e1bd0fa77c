#include "engine/device/finite_check.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "engine/device/pinned_memory.h"

namespace wan {

FiniteCheck::~FiniteCheck() {
  if (!arrival_.has_value()) return;
  try {
    arrival_->synchronize();
  } catch (const c10::Error&) {
    // Ignore the error: the device is lost, so no copy runs any more, and the next call to the
    // device reports it.
  }
}

void FiniteCheck::Begin(const at::Tensor& x) {
  const at::Tensor sum = x.sum(at::kFloat);
  if (x.is_cpu()) {
    sum_ = sum;
    return;
  }
  if (!locked_.defined()) {
    locked_ = AllocateHostMemory(sizeof(float), x.device()).view(at::kFloat);
  }
  sum_ = locked_;
  sum_.copy_(sum, /*non_blocking=*/true);
  arrival_.emplace(x.device().type());
  arrival_->record(at::accelerator::getCurrentStream(x.device().index()));
}

bool FiniteCheck::IsFinite() {
  if (arrival_.has_value()) {
    arrival_->synchronize();
    arrival_.reset();
  }
  return std::isfinite(*sum_.const_data_ptr<float>());
}

}  // namespace wan
