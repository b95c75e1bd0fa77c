#include "server/jobs/time_estimator.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace wan::server {
namespace {

// Weight of the newest observation.
constexpr double kNewest = 0.5;
constexpr size_t kRatios = 64;
// With fewer there is no rank for nine of ten.
constexpr size_t kFewestRatios = 9;

void Blend(std::optional<double>& rate, double value) {
  rate = rate.has_value() ? kNewest * value + (1 - kNewest) * *rate : value;
}

// Whether the time of a stage depends on its operations.
bool HasWork(const StagePlan& stage) { return stage.flops.value_or(0) > 0; }

}  // namespace

PlannedWork::PlannedWork(std::span<const StagePlan> stages) {
  for (const StagePlan& stage : stages) {
    const StageKind kind = stage.stage.kind;
    auto sum = std::find_if(kinds_.begin(), kinds_.end(),
                            [&](const OfKind& known) { return known.kind == kind; });
    if (sum == kinds_.end()) sum = kinds_.insert(sum, OfKind{kind});
    if (HasWork(stage)) {
      sum->flops += *stage.flops;
      ++sum->stages_with_flops;
    } else {
      ++sum->other_stages;
    }
  }
}

PlannedWork PlannedWork::BeforeSteps() const {
  PlannedWork before = *this;
  std::erase_if(before.kinds_, [](const OfKind& sum) {
    return sum.kind == StageKind::kStepLoading || sum.kind == StageKind::kStepInference ||
           sum.kind == StageKind::kVaeDecoding || sum.kind == StageKind::kVideoEncoding;
  });
  return before;
}

void TimeEstimator::Observe(std::string_view model, const StagePlan& stage, double seconds) {
  absl::MutexLock lock(&mutex_);
  Rates& rates = rates_[std::string(model)][stage.stage.kind];
  Blend(rates.per_stage, seconds);
  if (HasWork(stage)) Blend(rates.per_operation, seconds / *stage.flops);
}

std::optional<double> TimeEstimator::Seconds(std::string_view model,
                                             const PlannedWork& work) const {
  absl::MutexLock lock(&mutex_);
  const auto known = rates_.find(model);
  if (known == rates_.end() || work.kinds_.empty()) return std::nullopt;
  const ModelRates& of_model = known->second;
  const auto step = of_model.find(StageKind::kStepInference);
  if (step == of_model.end()) return std::nullopt;
  double seconds = 0;
  for (const PlannedWork::OfKind& of_kind : work.kinds_) {
    const auto found = of_model.find(of_kind.kind);
    const Rates& rates = found != of_model.end() ? found->second : step->second;
    int by_stage = of_kind.other_stages;
    if (rates.per_operation.has_value()) {
      seconds += of_kind.flops * *rates.per_operation;
    } else {
      by_stage += of_kind.stages_with_flops;
    }
    if (found != of_model.end()) seconds += by_stage * *rates.per_stage;
  }
  return seconds;
}

void TimeEstimator::ObserveJob(double estimated, double actual) {
  if (estimated <= 0 || actual <= 0) return;
  absl::MutexLock lock(&mutex_);
  ratios_.push_back(actual / estimated);
  if (ratios_.size() > kRatios) ratios_.pop_front();
}

TimeEstimator::Spread TimeEstimator::JobSpread() const {
  std::vector<double> sorted;
  {
    absl::MutexLock lock(&mutex_);
    sorted.assign(ratios_.begin(), ratios_.end());
  }
  if (sorted.size() < kFewestRatios) return Spread();
  std::sort(sorted.begin(), sorted.end());
  // Of n jobs and the next one, nine of ten are at most the one of this rank.
  const auto rank = static_cast<size_t>(std::ceil(0.9 * static_cast<double>(sorted.size() + 1)));
  return {sorted[sorted.size() / 2], sorted[std::min(rank, sorted.size()) - 1]};
}

}  // namespace wan::server
