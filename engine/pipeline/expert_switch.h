// Has the weights of the right expert on the device for every step.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/pipeline/video_pipeline.h"
#include "engine/pipeline/weight_lease.h"

namespace wan {

// For one job. Its end gives the device's memory back, as the plan's policies say.
class ExpertSwitch {
 public:
  // Both must outlive the object.
  ExpertSwitch(const GenerationPlan& plan, const PipelineModel& model)
      : plan_(plan), model_(model) {}

  // The expert of the plan's next step; called once for each, in order. If the plan prefetches and
  // another expert takes over with the step after, its weights are queued now, so that they come
  // while this step computes.
  absl::StatusOr<VideoTransformer*> Take(const StepPlan& step);

 private:
  absl::StatusOr<const Expert*> Find(std::string_view name) const;
  WeightLease Lease(const Expert& expert) const;

  const GenerationPlan& plan_;
  const PipelineModel& model_;
  size_t steps_taken_ = 0;
  const Expert* current_ = nullptr;
  std::optional<WeightLease> lease_;
  const Expert* next_ = nullptr;
  std::optional<WeightLease> next_lease_;
};

}  // namespace wan
