#include "engine/weights/weight_lease.h"

#include <c10/util/Exception.h>

#include <utility>

namespace wan {

ResidencyPolicy PolicyOf(const GenerationPlan& plan, ModelComponent component) {
  for (const ComponentResidency& entry : plan.residency) {
    if (entry.component == component) return entry.policy;
  }
  return ResidencyPolicy::kResident;
}

WeightLease::WeightLease(std::shared_ptr<ComponentWeights> weights, ResidencyPolicy policy,
                         const std::stop_token& stop)
    : weights_(std::move(weights)), policy_(policy) {
  if (weights_ == nullptr) return;
  if (policy == ResidencyPolicy::kStream) {
    weights_->Stream(stop);
  } else {
    weights_->BringUp(stop);
  }
}

WeightLease::~WeightLease() { End(); }

WeightLease& WeightLease::operator=(WeightLease&& other) noexcept {
  if (this != &other) {
    End();
    weights_ = std::move(other.weights_);
    policy_ = other.policy_;
  }
  return *this;
}

void WeightLease::End() noexcept {
  if (weights_ == nullptr) return;
  try {
    if (policy_ == ResidencyPolicy::kDisk) {
      weights_->Drop();
    } else if (policy_ == ResidencyPolicy::kHost || policy_ == ResidencyPolicy::kStream) {
      weights_->Park();
    }
  } catch (const c10::Error&) {
    // Ignore the error: host copies have existed since the job began, so moving fails only if the
    // device is lost. The caller learns of that from its next call to the device; throwing in a
    // destructor would end the process.
  }
  weights_ = nullptr;
}

}  // namespace wan
