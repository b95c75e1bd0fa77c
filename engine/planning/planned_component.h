// One component of a model as planning sees it: the size of its weights, and where the operator
// wants them.
#pragma once

#include <cstdint>

#include "engine/api/model_parts.h"
#include "engine/api/residency.h"

namespace wan {

// A component's weights, in bytes of device memory.
struct PlannedComponent {
  ModelComponent component = ModelComponent::kTransformer;
  ResidencyPolicy policy = ResidencyPolicy::kResident;  // as configured
  uint64_t bytes = 0;
  // If the weights are streamed: the bytes that stay on the device while the component works, and
  // those of the largest part that comes and goes.
  uint64_t base_bytes = 0;
  uint64_t group_bytes = 0;
  // The weights are on other devices of the group than the first, which is the one that is planned.
  bool elsewhere = false;
};

}  // namespace wan
