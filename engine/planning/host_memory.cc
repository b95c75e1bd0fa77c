#include "engine/planning/host_memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wan {
namespace {

// Whether a component is an expert that some LoRA changes.
bool HasLora(const PlannedModel& model, size_t component) {
  return std::any_of(model.loras.begin(), model.loras.end(), [&](const PlannedLora& lora) {
    return component > 0 && component <= lora.experts.size() &&
           lora.experts[component - 1].has_value();
  });
}

}  // namespace

absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             uint64_t available_bytes) {
  constexpr double kGiB = 1 << 30;
  uint64_t needed = 0;
  std::vector<std::string> names;
  for (size_t i = 0; i < policies.size(); ++i) {
    const bool computes_there = policies[i] == ResidencyPolicy::kCpu;
    const bool is_read_again = policies[i] == ResidencyPolicy::kDisk;
    const bool waits_there =
        policies[i] != ResidencyPolicy::kResident && !is_read_again && !computes_there;
    const bool is_copied = waits_there || (HasLora(model, i) && !is_read_again);
    if (!computes_there && !is_copied) continue;
    needed += model.components[i].bytes * (computes_there && is_copied ? 2 : 1);
    names.emplace_back(NameOf(model.components[i].component));
  }
  for (const PlannedLora& lora : model.loras) needed += lora.host_bytes;
  if (needed <= available_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the weights of %s need %.1f GiB of host memory, but %.1f GiB is available; give the machine "
      "or the device more memory, or give the weights the policy disk (docs/memory.md)",
      absl::StrJoin(names, ", "), static_cast<double>(needed) / kGiB,
      static_cast<double>(available_bytes) / kGiB));
}

}  // namespace wan
