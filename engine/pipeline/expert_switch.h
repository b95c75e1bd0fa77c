// Has the weights of the right expert on the device for every step, with the job's LoRAs.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/device/work_gate.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/weights/weight_lease.h"

namespace wan {

// For one job.
class ExpertSwitch {
 public:
  // All must outlive the object. Decides what the experts' weights are: where other LoRAs than the
  // job's are merged on the device, the base's weights are on their way there when this returns, so
  // that it is best made before the text encoder works. `gate` is passed while LoRAs are merged,
  // and its stop token ends what brings weights.
  ExpertSwitch(const GenerationPlan& plan, const PipelineModel& model, Recorder& recorder,
               WorkGate gate = {});

  // The expert of the plan's step number `step`, 0 for the first; called for one step after the
  // other. If the plan prefetches and another expert takes over with the step after, its weights
  // are queued now, so that they come while this step computes.
  //
  // Where LoRAs are merged into weights that are on the device already, that is a span
  // LoRA_Merging; weights that still have to come are merged one by one when they are used.
  // CANCELLED after a stop request while they are merged.
  absl::StatusOr<VideoTransformer*> Take(int step);

  // After the last step, or before a step is tried again: gives the device's memory back, as the
  // plan's policies say. The end of the object does so, too.
  void Finish();

 private:
  absl::StatusOr<const Expert*> Find(ExpertRole role) const;
  WeightLease Lease(const Expert& expert) const;
  absl::Status Merge(const Expert& expert);

  const GenerationPlan& plan_;
  const PipelineModel& model_;
  Recorder& recorder_;
  const WorkGate gate_;
  std::set<const Expert*> to_merge_;
  const Expert* current_ = nullptr;
  std::optional<WeightLease> lease_;
  const Expert* next_ = nullptr;
  std::optional<WeightLease> next_lease_;
};

}  // namespace wan
