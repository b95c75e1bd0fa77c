// Brings a component's weights to the device for as long as the component works, and then moves
// them away again as the residency policy says.
#pragma once

#include <memory>
#include <stop_token>

#include "engine/api/generation.h"
#include "engine/weights/component_weights.h"

namespace wan {

// Returns a component's policy in the plan; kResident if the plan does not name the component.
ResidencyPolicy PolicyOf(const GenerationPlan& plan, ModelComponent component);

class WeightLease {
 public:
  // Starts to copy the weights and returns at once; ComponentWeights::Use waits for each group.
  // Weights without a copy in host memory are read from the checkpoint before the constructor
  // returns. A stop request ends the copying, even after the constructor has returned. If `weights`
  // is null, the lease does nothing. Throws what ComponentWeights throws: c10::OutOfMemoryError if
  // the device has no room, StatusException if reading fails or a stop is requested.
  WeightLease(std::shared_ptr<ComponentWeights> weights, ResidencyPolicy policy,
              const std::stop_token& stop = {});
  // Frees the weights' device memory, unless the policy keeps them there.
  ~WeightLease();
  WeightLease(WeightLease&& other) noexcept = default;
  WeightLease& operator=(WeightLease&& other) noexcept;

 private:
  void End() noexcept;

  std::shared_ptr<ComponentWeights> weights_;
  ResidencyPolicy policy_;
};

}  // namespace wan
