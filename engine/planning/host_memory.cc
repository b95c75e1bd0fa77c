#include "engine/planning/host_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"

namespace wan {
namespace {

// Returns whether a component is an expert that some LoRA changes.
bool HasLora(const PlannedModel& model, size_t component) {
  return std::any_of(model.loras.begin(), model.loras.end(), [&](const PlannedLora& lora) {
    return component > 0 && component <= lora.experts.size() &&
           lora.experts[component - 1].has_value();
  });
}

}  // namespace

absl::Status CheckHostMemory(const PlannedModel& model, std::span<const ResidencyPolicy> policies,
                             const HostForLoading& host) {
  constexpr double kGiB = 1 << 30;
  uint64_t needed = 0;
  uint64_t in_use = 0;  // on a CPU: largest component that is loaded only while it works
  std::vector<std::string> names;
  for (size_t i = 0; i < policies.size(); ++i) {
    const uint64_t bytes = model.components[i].bytes;
    const bool is_read = policies[i] == ResidencyPolicy::kDisk;
    const bool waits =
        policies[i] == ResidencyPolicy::kHost || policies[i] == ResidencyPolicy::kStream;
    if (host.is_device && (is_read || waits)) in_use = std::max(in_use, bytes);
    if (is_read) continue;
    const bool computes = !waits && (policies[i] == ResidencyPolicy::kCpu || host.is_device);
    const bool is_copied = waits || HasLora(model, i);
    if (!computes && !is_copied) continue;
    needed += bytes * (computes && is_copied ? 2 : 1);
    names.emplace_back(NameOf(model.components[i].component));
  }
  needed += in_use;
  for (const PlannedLora& lora : model.loras) needed += lora.host_bytes;
  if (needed <= host.available_bytes) return absl::OkStatus();
  const std::string what = names.empty()
                               ? "the largest component, which is read for each job,"
                               : absl::StrCat("the weights of ", absl::StrJoin(names, ", "));
  return WithReason(
      absl::FailedPreconditionError(absl::StrFormat(
          "%s%s %.1f GiB of host memory, and %.1f GiB is available to this process: the machine, "
          "or the limit of its container, needs more memory%s (docs/operate/memory.md)",
          what, names.empty() ? " needs" : " need", static_cast<double>(needed) / kGiB,
          static_cast<double>(host.available_bytes) / kGiB,
          names.empty() ? "" : ", or the weights need the policy disk")),
      "HOST_MEMORY_EXHAUSTED");
}

absl::Status FitHostMemory(const PlannedModel& model, const HostForLoading& host,
                           std::vector<ResidencyPolicy>& policies) {
  absl::Status status = CheckHostMemory(model, policies, host);
  if (status.ok()) return status;
  std::vector<ResidencyPolicy> frugal = policies;
  for (size_t i = 0; i < frugal.size(); ++i) {
    const bool waits = frugal[i] == ResidencyPolicy::kHost || frugal[i] == ResidencyPolicy::kStream;
    const bool is_auto = model.components[i].policy == ResidencyPolicy::kAuto;
    if (is_auto && (waits || host.is_device)) frugal[i] = ResidencyPolicy::kDisk;
  }
  if (frugal == policies) return status;
  status = CheckHostMemory(model, frugal, host);
  if (status.ok()) policies = std::move(frugal);
  return status;
}

}  // namespace wan
