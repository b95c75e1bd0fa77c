#include "server/jobs/time_estimator.h"

#include <algorithm>

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

PlannedWork::PlannedWork(std::span<const StagePlan> stages) {
  for (const StagePlan& stage : stages) {
    const std::string name = StageFamily(stage.stage);
    auto family = std::find_if(families_.begin(), families_.end(),
                               [&](const Family& known) { return known.name == name; });
    if (family == families_.end()) family = families_.insert(family, Family{name});
    if (HasWork(stage)) {
      family->flops += *stage.flops;
      ++family->stages_with_flops;
    } else {
      ++family->other_stages;
    }
  }
}

void TimeEstimator::Observe(std::string_view model, const StagePlan& stage, double seconds) {
  absl::MutexLock lock(&mutex_);
  Rates& rates = rates_[std::string(model)][StageFamily(stage.stage)];
  Blend(rates.per_stage, seconds);
  if (HasWork(stage)) Blend(rates.per_operation, seconds / *stage.flops);
}

std::optional<double> TimeEstimator::Seconds(std::string_view model,
                                             const PlannedWork& work) const {
  absl::MutexLock lock(&mutex_);
  const auto known = rates_.find(model);
  if (known == rates_.end() || work.families_.empty()) return std::nullopt;
  const ModelRates& of_model = known->second;
  const auto step = of_model.find(StageFamily(StepInferenceStage(0)));
  if (step == of_model.end()) return std::nullopt;
  double seconds = 0;
  for (const PlannedWork::Family& family : work.families_) {
    const auto found = of_model.find(family.name);
    const Rates& rates = found != of_model.end() ? found->second : step->second;
    int by_stage = family.other_stages;
    if (rates.per_operation.has_value()) {
      seconds += family.flops * *rates.per_operation;
    } else {
      by_stage += family.stages_with_flops;
    }
    if (found != of_model.end()) seconds += by_stage * *rates.per_stage;
  }
  return seconds;
}

}  // namespace wan::server
