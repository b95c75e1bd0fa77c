// A checkpoint as planning sees it, before any of it is loaded: dimensions, policies, and what each
// component's weights will take of a device. Pure functions of the dimensions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/residency.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/planning/plan.h"

namespace wan {

// Names of the components, as ComponentResidency has them.
inline constexpr std::string_view kTextEncoderComponent = "text_encoder";
inline constexpr std::string_view kVaeComponent = "vae";
// Of the checkpoint's experts, in its order: "transformer", "transformer_2".
std::string_view TransformerComponent(int expert);

// What the weights take where they are loaded to: the tensors that the components' loaders ask for
// (engine/models/wan), in their groups, as the allocator rounds them. `element_bytes` is the size
// of the compute dtype. Name and policy are the caller's.
PlannedComponent TextEncoderWeights(const TextEncoderConfig& config, int64_t element_bytes);
PlannedComponent TransformerWeights(const TransformerConfig& config, int64_t element_bytes);
PlannedComponent VaeWeights(const VaeConfig& config);

// All of it. What `residency` does not name is kAuto. UNIMPLEMENTED for a model of no known family.
absl::StatusOr<PlannedModel> PlanCheckpoint(const Checkpoint& checkpoint, int64_t element_bytes,
                                            std::span<const ComponentResidency> residency);

// Whether the host has room for the weights that wait or compute there and for LoRAs, with the copy
// of the experts' weights from where a job's end restores them, `policies` being where each
// component is loaded to: locked memory is not swapped, and to ask for more than there is ends
// processes. FAILED_PRECONDITION says how much is missing.
absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             uint64_t available_bytes);

}  // namespace wan
