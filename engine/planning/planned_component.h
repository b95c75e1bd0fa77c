// A component as planning sees it: its configured policy and the size of its weights.
#pragma once

#include <cstdint>

#include "engine/api/model_parts.h"
#include "engine/api/residency.h"

namespace wan {

// All sizes are bytes of device memory.
struct PlannedComponent {
  ModelComponent component = ModelComponent::kTransformer;
  ResidencyPolicy policy = ResidencyPolicy::kResident;  // the policy that the operator configured
  uint64_t bytes = 0;
  // For streamed weights: the bytes that stay on the device while the component works, and the
  // bytes of the largest part that is streamed.
  uint64_t base_bytes = 0;
  uint64_t group_bytes = 0;
  // True if the group's first device, for which the plan is made, does not have these weights.
  bool elsewhere = false;
};

}  // namespace wan
