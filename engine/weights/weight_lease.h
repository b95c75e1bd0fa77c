// Brings a component's weights to where its policy wants them for as long as it works.
#pragma once

#include <memory>
#include <stop_token>

#include "engine/api/generation.h"
#include "engine/weights/component_weights.h"

namespace wan {

// The policy of a component in a plan; kResident if the plan does not say.
ResidencyPolicy PolicyOf(const GenerationPlan& plan, ModelComponent component);

class WeightLease {
 public:
  // Begins to bring the weights and returns at once; the component waits for what it computes with.
  // Weights that have no copy in host memory are read from the checkpoint before it returns. A
  // request of `stop` ends all of it, also after the call has returned. Null weights: always there.
  // Throws what ComponentWeights throws: c10::OutOfMemoryError where the device has no room,
  // StatusException where reading fails or was stopped.
  WeightLease(std::shared_ptr<ComponentWeights> weights, ResidencyPolicy policy,
              const std::stop_token& stop = {});
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
