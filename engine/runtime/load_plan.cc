#include "engine/runtime/load_plan.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ops/attention.h"
#include "engine/ops/fused_convolution.h"
#include "engine/planning/host_memory.h"
#include "engine/planning/plan.h"
#include "engine/runtime/replica_loading.h"

namespace wan {
namespace {

// Tensor cores multiply inputs of 8 bits from this compute capability on, in the form of
// AttentionProblem::compute_capability.
constexpr int kFirstWithEightBits = 89;

std::string CapabilityText(int capability) {
  return absl::StrCat(capability / 10, ".", capability % 10);
}

// Plans a request that sets no optional field and whose texts have the maximum length.
absl::StatusOr<GenerationPlan> PlanDefaults(const PlannedModel& planned, const PlanLimits& limits) {
  GenerationRequest request;
  request.size_is_exact = true;
  InspectedRequest inspected;
  inspected.prompt_tokens = planned.transformer.text_len;
  inspected.negative_prompt_tokens = planned.transformer.text_len;
  if (!planned.family->accepts_text_only) {
    request.image = std::make_shared<const std::string>();
    const VideoShape& shape = planned.family->shape;
    inspected.image = ImageSize{shape.width, shape.height};
  }
  return MakePlan(ResolveRequest(request, planned, /*drawn_seed=*/0), planned, inspected, limits);
}

// Returns DATA_LOSS if the checkpoint's own defaults do not make a valid request.
absl::Status CheckDefaults(const Checkpoint& checkpoint, const PlannedModel& planned) {
  if (!planned.generation_defaults.has_value()) return absl::OkStatus();
  const absl::StatusOr<GenerationPlan> plan = PlanDefaults(planned, {});
  if (plan.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(checkpoint.folder(), "/generation_defaults.json: ", plan.status().message()));
}

// Divides the experts between the devices if a job of the model's default shape fits only with one
// expert per device.
void DivideExpertsIfNeeded(uint64_t device_memory_bytes, PlannedModel& planned) {
  if (planned.ranks == 1 || planned.family->experts.size() != 2) return;
  const PlanLimits limits{device_memory_bytes, {}};
  if (PlanDefaults(planned, limits).ok()) return;
  PlannedModel divided = planned;
  DivideExperts(divided);
  if (PlanDefaults(divided, limits).ok()) planned = std::move(divided);
}

// Decides where components are loaded: to the places that a job of the model's default shape needs
// or, if that job does not fit, to host memory.
std::vector<ResidencyPolicy> FirstPolicies(const PlannedModel& planned, const PlanLimits& limits) {
  const absl::StatusOr<GenerationPlan> plan = PlanDefaults(planned, limits);
  std::vector<ResidencyPolicy> policies;
  for (size_t i = 0; i < planned.components.size(); ++i) {
    const ResidencyPolicy configured = planned.components[i].policy;
    const ResidencyPolicy decided =
        plan.ok() ? plan->residency[i].policy : ResidencyPolicy::kStream;
    policies.push_back(configured == ResidencyPolicy::kAuto ? decided : configured);
  }
  return policies;
}

}  // namespace

std::optional<std::string> WhyNoEightBits(at::ScalarType dtype,
                                          const std::vector<at::Device>& devices) {
  if (devices.front().is_cpu()) return std::nullopt;
  if (dtype == at::kFloat) {
    return "while the server's dtype is fp32; a GPU has products of 8 bits only for bf16";
  }
  int least = kFirstWithEightBits;
  for (const at::Device& device : devices) least = std::min(least, ComputeCapability(device));
  if (least == kFirstWithEightBits) return std::nullopt;
  return absl::StrCat("on this device, whose compute capability ", CapabilityText(least),
                      " has no products of 8 bits (", CapabilityText(kFirstWithEightBits),
                      " or higher has)");
}

absl::StatusOr<PlannedModel> PlanModel(const Checkpoint& checkpoint, const LoadOptions& options) {
  PlannedModel planned = PlanCheckpoint(
      checkpoint, static_cast<int64_t>(at::elementSize(options.dtype)), options.engine);
  // A forward in which ranks exchange tensors cannot be recorded.
  planned.records_forwards = options.graphs != nullptr && options.peers.empty();
  if (absl::Status status = PlanForGroup(static_cast<int64_t>(options.peers.size()) + 1, planned);
      !status.ok()) {
    return status;
  }
  planned.fuses_convolutions = planned.components.back().policy != ResidencyPolicy::kCpu &&
                               HasFusedConvolutions(options.device);
  std::vector<at::Device> devices = {options.device};
  devices.insert(devices.end(), options.peers.begin(), options.peers.end());
  planned.no_eight_bits = WhyNoEightBits(options.dtype, devices);
  if (absl::Status status = CheckDefaults(checkpoint, planned); !status.ok()) return status;
  return planned;
}

absl::StatusOr<std::vector<ResidencyPolicy>> PlanResidency(const LoadOptions& options,
                                                           PlannedModel& planned) {
  // Decide this first, because the host memory of the replicas depends on it.
  DivideExpertsIfNeeded(options.device_memory_bytes, planned);
  PlanLimits limits{options.device_memory_bytes, {}};
  const bool host_is_device = options.device.is_cpu();
  uint64_t host_bytes = options.host_memory_bytes;
  if (const uint64_t replicas = ReplicaHostBytes(planned, host_is_device); host_bytes > 0) {
    host_bytes = host_bytes > replicas ? host_bytes - replicas : 1;
  }
  // On a CPU all weights are resident. Jobs smaller than the default shape may still fit, so host
  // memory is not limited here.
  if (!host_is_device) limits.host.available_bytes = host_bytes;
  std::vector<ResidencyPolicy> policies = FirstPolicies(planned, limits);
  if (host_bytes > 0) {
    absl::Status status = FitHostMemory(planned, {host_bytes, host_is_device}, policies);
    if (!status.ok()) return status;
  }
  return policies;
}

}  // namespace wan
