// Brings a component's weights to where its policy wants them for as long as it works.
#pragma once

#include <memory>

#include "engine/api/generation.h"
#include "engine/weights/component_weights.h"

namespace wan {

// The policy of a component in a plan; kResident if the plan does not say.
ResidencyPolicy PolicyOf(const GenerationPlan& plan, ModelComponent component);

class WeightLease {
 public:
  // Queues the weights and returns at once; the component waits for what it computes with. Null
  // weights: always there. Throws c10::OutOfMemoryError where the device has no room.
  WeightLease(std::shared_ptr<ComponentWeights> weights, ResidencyPolicy policy);
  // The device's memory is free again, unless the policy is to stay there.
  ~WeightLease();
  WeightLease(WeightLease&& other) noexcept = default;
  WeightLease& operator=(WeightLease&& other) noexcept;

 private:
  void End() noexcept;

  std::shared_ptr<ComponentWeights> weights_;
  ResidencyPolicy policy_;
};

}  // namespace wan
