#include "server/jobs/time_estimator.h"

#include "engine/api/recorder.h"

namespace wan::server {
namespace {

// Weight of the newest observation.
constexpr double kNewest = 0.5;

void Blend(std::optional<double>& rate, double value) {
  rate = rate.has_value() ? kNewest * value + (1 - kNewest) * *rate : value;
}

// Whether its operations are what takes a stage's time.
bool HasWork(const StagePlan& stage) { return stage.flops.value_or(0) > 0; }

}  // namespace

void TimeEstimator::Observe(std::string_view model, const StagePlan& stage, double seconds) {
  absl::MutexLock lock(&mutex_);
  Rates& rates = rates_[Key(model, StageFamily(stage.stage))];
  Blend(rates.per_stage, seconds);
  if (HasWork(stage)) Blend(rates.per_operation, seconds / *stage.flops);
}

std::optional<double> TimeEstimator::Seconds(std::string_view model,
                                             std::span<const StagePlan> stages) const {
  absl::MutexLock lock(&mutex_);
  const auto step = rates_.find(Key(model, StageFamily(StepInferenceStage(0))));
  if (step == rates_.end() || stages.empty()) return std::nullopt;
  double seconds = 0;
  for (const StagePlan& stage : stages) {
    const auto found = rates_.find(Key(model, StageFamily(stage.stage)));
    const Rates& rates = found != rates_.end() ? found->second : step->second;
    if (HasWork(stage) && rates.per_operation.has_value()) {
      seconds += *stage.flops * *rates.per_operation;
    } else if (found != rates_.end()) {
      seconds += *rates.per_stage;
    }
  }
  return seconds;
}

}  // namespace wan::server
