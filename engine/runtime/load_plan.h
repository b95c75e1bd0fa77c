// Decides how a model is loaded, before any weight is read.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/residency.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/planned_model.h"
#include "engine/runtime/load_options.h"

namespace wan {

// Returns why transformers of this dtype cannot compute with inputs of 8 bits on some device
// (PlannedModel::no_eight_bits); nullopt if all devices support it. CPUs support it: they round to
// 8 bits and compute in fp32.
std::optional<std::string> WhyNoEightBits(at::ScalarType dtype,
                                          const std::vector<at::Device>& devices);

// Describes the checkpoint, so that jobs on the devices of `options` can be planned; the caller
// adds the LoRAs. INVALID_ARGUMENT if a configured policy is not possible in a group of devices;
// DATA_LOSS if the checkpoint's own defaults do not make a valid request.
absl::StatusOr<PlannedModel> PlanModel(const Checkpoint& checkpoint, const LoadOptions& options);

// Decides whether the devices of a group divide the experts (DivideExperts). Returns the policy
// with which each component is loaded: the policy that a job of the model's default shape needs, or
// a more frugal policy if that job does not fit. FAILED_PRECONDITION (HOST_MEMORY_EXHAUSTED) if the
// model does not fit into host memory.
absl::StatusOr<std::vector<ResidencyPolicy>> PlanResidency(const LoadOptions& options,
                                                           PlannedModel& planned);

}  // namespace wan
