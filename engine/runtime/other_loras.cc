// Implements the function of model_loading.h that replaces a loaded model's LoRAs.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/api/errors.h"
#include "engine/runtime/loading_part.h"
#include "engine/runtime/model_description.h"
#include "engine/runtime/model_loading.h"

namespace wan {
namespace {

// Returns the bytes of host copies that must be made for experts that had no LoRA so far. The
// copies restore an expert's weights after a job.
uint64_t MissingCopies(const std::vector<Expert>& experts, const OpenedLoras& loras) {
  const auto missing = [](const ComponentWeights& weights) {
    if (weights.home() == ComponentWeights::Home::kDisk) return int64_t{0};
    return std::max<int64_t>(weights.Sizes().total - weights.HostBytes(), 0);
  };
  int64_t bytes = 0;
  for (size_t i = 0; i < experts.size(); ++i) {
    if (!loras.Changes(i) || experts[i].loras != nullptr) continue;
    bytes += missing(*experts[i].weights);
    for (const ExpertReplica& replica : experts[i].replicas) bytes += missing(*replica.weights);
  }
  return static_cast<uint64_t>(bytes);
}

absl::Status CheckRoom(uint64_t needed, uint64_t available) {
  constexpr double kGiB = 1 << 30;
  if (available == 0 || needed <= available) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrFormat(
                        "the LoRAs need %.1f GiB of host memory, with the copies that restore the "
                        "weights, and %.1f GiB is available to this process; the model keeps the "
                        "LoRAs that it has (docs/operate/memory.md)",
                        static_cast<double>(needed) / kGiB, static_cast<double>(available) / kGiB)),
                    "HOST_MEMORY_EXHAUSTED");
}

}  // namespace

absl::StatusOr<std::shared_ptr<LoadedModel>> WithOtherLoras(const LoadedModel& model,
                                                            const ModelSpec& spec,
                                                            const LoadOptions& options) {
  LoadingPart part(options.span);
  const ModelFamily& family = *model.pipeline.planned.family;
  absl::StatusOr<OpenedLoras> opened =
      OpenedLoras::Open(spec.loras, *model.checkpoint, family, options.stop, model.loras.get());
  if (!opened.ok()) return opened.status();
  absl::Status room =
      CheckRoom(opened->MissingBytes() + MissingCopies(model.pipeline.experts, *opened),
                options.host_memory_bytes);
  if (!room.ok()) return room;
  auto changed = std::make_shared<LoadedModel>(model);
  changed->loras = std::make_shared<OpenedLoras>(*std::move(opened));
  // Keeps a library even if it has no LoRAs any more, because it removes merged LoRAs from the
  // weights.
  for (Expert& expert : changed->pipeline.experts) {
    if (expert.loras != nullptr) expert.loras = std::make_shared<LoraLibrary>();
    for (ExpertReplica& replica : expert.replicas) {
      if (replica.loras != nullptr) replica.loras = std::make_shared<LoraLibrary>();
    }
  }
  changed->loras->AddTo(changed->pipeline.experts, options.stop);
  part.End("loras");
  changed->pipeline.planned.loras = changed->loras->Plan();
  DescribeLoras(*changed->checkpoint, *changed->loras, changed->description);
  return changed;
}

}  // namespace wan
