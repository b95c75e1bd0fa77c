// Brings the weights of each step's expert to the device, with the job's LoRAs merged in.
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

// Serves one job. Not thread-safe.
class ExpertSwitch {
 public:
  // All arguments must outlive this object. If other LoRAs than the job's are merged into weights
  // on the device, queues copies of the base's weights; so create it before the text encoder works.
  // Merging LoRAs passes `gate`, and its stop token also ends the copying of weights.
  ExpertSwitch(const GenerationPlan& plan, const PipelineModel& model, Recorder& recorder,
               WorkGate gate = {});

  // Returns the expert of the plan's step `step`, 0 for the first. Call it for one step after the
  // other. If the plan prefetches and the next step has another expert, queues that expert's
  // weights, so that they are copied while this step computes.
  //
  // Merges LoRAs into weights that are on the device already, in the span LoRA_Merging. Weights
  // that have not arrived are merged group by group when they are used. CANCELLED after a stop
  // request while LoRAs are merged.
  absl::StatusOr<VideoTransformer*> Take(int step);

  // Frees the device memory that the plan's policies do not keep, and that of recorded forwards.
  // Call it before a step is tried again because memory ran out. The destructor does the same, but
  // lets recorded forwards be for the next job.
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
