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

// An object serves one job. Not thread-safe.
class ExpertSwitch {
 public:
  // All arguments must outlive this object. If weights on the device have LoRAs that the job does
  // not use, the constructor queues copies that restore them; so create the object before the text
  // encoder works. Merging LoRAs passes `gate`; its stop token also ends the copying of weights.
  ExpertSwitch(const GenerationPlan& plan, const PipelineModel& model, Recorder& recorder,
               WorkGate gate = {});

  // Returns the expert for step `step` (from 0) of the plan. Call Take for all steps in order. If
  // the plan prefetches and the next step has another expert, this call queues copies of that
  // expert's weights, which run while this step computes.
  //
  // Merges the job's LoRAs into weights that are already on the device, in the span LoRA_Merging.
  // Weights that are not on the device yet are merged group by group at their first use. CANCELLED
  // if a stop is requested during the merging.
  absl::StatusOr<VideoTransformer*> Take(int step);

  // Frees the device memory of recorded forwards, and of weights that the plan's policies do not
  // keep on the device. Call Finish when memory ran out, before the step is repeated. The
  // destructor frees the weights too, but keeps recorded forwards for the next job.
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
