// A component as planning sees it: the size of its weights and its configured policy.
#pragma once

#include <cstdint>

#include "engine/api/model_parts.h"
#include "engine/api/residency.h"

namespace wan {

// Sizes of a component's weights are in bytes of device memory.
struct PlannedComponent {
  ModelComponent component = ModelComponent::kTransformer;
  ResidencyPolicy policy = ResidencyPolicy::kResident;  // configured policy
  uint64_t bytes = 0;
  // If weights are streamed: the bytes that stay on the device while the component works, and the
  // bytes of the largest part that is streamed.
  uint64_t base_bytes = 0;
  uint64_t group_bytes = 0;
  // Whether the weights are only on devices of the group other than the first, which is the planned
  // one.
  bool elsewhere = false;
};

}  // namespace wan
