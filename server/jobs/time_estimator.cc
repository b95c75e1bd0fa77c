#include "server/jobs/time_estimator.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace wan::server {
namespace {

// The weight of the newest observation in the moving average.
constexpr double kNewest = 0.5;
constexpr size_t kRatios = 64;
// The 90th percentile is computed from at least this many jobs.
constexpr size_t kFewestRatios = 9;
// The spread of estimates that use the assumed rate.
constexpr TimeEstimator::Spread kAssumed = {.p50 = 1, .p90 = 3};

void Blend(std::optional<double>& rate, double value) {
  rate = rate.has_value() ? kNewest * value + (1 - kNewest) * *rate : value;
}

// The inverse of NameOf(StageKind) for the stages of a job; returns nothing for other names.
std::optional<StageKind> ParseStageKind(std::string_view name) {
  constexpr std::array kKinds = {StageKind::kTi2vPreprocess, StageKind::kT2vPreprocess,
                                 StageKind::kI2vPreprocess,  StageKind::kT5Encoding,
                                 StageKind::kVaeEncoding,    StageKind::kStepLoading,
                                 StageKind::kLoraMerging,    StageKind::kStepInference,
                                 StageKind::kVaeDecoding,    StageKind::kVideoEncoding};
  for (const StageKind kind : kKinds) {
    if (NameOf(kind) == name) return kind;
  }
  return std::nullopt;
}

// The words that follow the name of a stage in the learned rates: "Step_Inference/eight_bits". A
// server that does not know them skips their lines.
constexpr std::array<std::pair<StageMethod, std::string_view>, 4> kMethods = {
    {{StageMethod::kExact, ""},
     {StageMethod::kEightBits, "/eight_bits"},
     {StageMethod::kReuse, "/reuse"},
     {StageMethod::kTinyDecoder, "/tiny"}}};

std::string_view SuffixOf(StageMethod method) {
  for (const auto& [known, suffix] : kMethods) {
    if (known == method) return suffix;
  }
  return "";
}

// Inverse of the names that Learned writes.
std::optional<std::pair<StageKind, StageMethod>> ParseRateName(std::string_view name) {
  const size_t kind_ends = std::min(name.find('/'), name.size());
  const std::optional<StageKind> kind = ParseStageKind(name.substr(0, kind_ends));
  if (!kind.has_value()) return std::nullopt;
  for (const auto& [method, suffix] : kMethods) {
    if (suffix == name.substr(kind_ends)) return std::pair(*kind, method);
  }
  return std::nullopt;
}

// Whether the plan counts the stage's operations; if so, its time is estimated from them.
bool HasWork(const StagePlan& stage) { return stage.flops.value_or(0) > 0; }

}  // namespace

PlannedWork::PlannedWork(std::span<const StagePlan> stages) {
  for (const StagePlan& stage : stages) {
    const StageKind kind = stage.stage.kind;
    auto sum = std::find_if(kinds_.begin(), kinds_.end(), [&](const OfKind& known) {
      return known.kind == kind && known.method == stage.method;
    });
    if (sum == kinds_.end()) sum = kinds_.insert(sum, OfKind{kind, stage.method});
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
  Rates& rates = rates_[std::string(model)][{stage.stage.kind, stage.method}];
  Blend(rates.per_stage, seconds);
  if (HasWork(stage)) Blend(rates.per_operation, seconds / *stage.flops);
}

std::optional<double> TimeEstimator::Seconds(std::string_view model,
                                             const PlannedWork& work) const {
  absl::MutexLock lock(&mutex_);
  const ModelRates* const learned = LearnedOf(model);
  if (learned == nullptr || work.kinds_.empty()) return std::nullopt;
  const ModelRates& of_model = *learned;
  const auto step = StepOf(of_model);
  double seconds = 0;
  for (const PlannedWork::OfKind& of_kind : work.kinds_) {
    const auto found = of_model.find({of_kind.kind, of_kind.method});
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

const TimeEstimator::ModelRates* TimeEstimator::LearnedOf(std::string_view model) const {
  const auto known = rates_.find(model);
  if (known == rates_.end() || StepOf(known->second) == known->second.end()) return nullptr;
  return &known->second;
}

TimeEstimator::ModelRates::const_iterator TimeEstimator::StepOf(const ModelRates& rates) {
  // A step that reuses blocks says nothing about steps that compute them.
  for (const StageMethod method : {StageMethod::kExact, StageMethod::kEightBits}) {
    const auto found = rates.find({StageKind::kStepInference, method});
    if (found != rates.end()) return found;
  }
  return rates.end();
}

void TimeEstimator::Assume(double rate) {
  absl::MutexLock lock(&mutex_);
  assumed_ = rate;
}

std::optional<double> TimeEstimator::Expected(std::string_view model,
                                              const PlannedWork& work) const {
  const std::optional<double> learned = Seconds(model, work);
  if (learned.has_value()) return learned;
  double flops = 0;
  for (const PlannedWork::OfKind& of_kind : work.kinds_) flops += of_kind.flops;
  absl::MutexLock lock(&mutex_);
  if (assumed_ <= 0 || flops <= 0) return std::nullopt;
  return flops / assumed_;
}

TimeEstimator::Spread TimeEstimator::ExpectedSpread(std::string_view model) const {
  {
    absl::MutexLock lock(&mutex_);
    if (LearnedOf(model) == nullptr) return kAssumed;
  }
  return JobSpread();
}

std::string TimeEstimator::Learned() const {
  absl::MutexLock lock(&mutex_);
  std::string lines;
  for (const auto& [model, of_model] : rates_) {
    for (const auto& [name, rates] : of_model) {
      // -1 stands for an unknown rate. The model's name comes last because it may contain spaces.
      absl::StrAppend(&lines, std::string(NameOf(name.first)), std::string(SuffixOf(name.second)),
                      " ",
                      absl::StrFormat("%.9g %.9g ", rates.per_operation.value_or(-1),
                                      rates.per_stage.value_or(-1)),
                      model, "\n");
    }
  }
  return lines;
}

void TimeEstimator::TakeOver(std::string_view text) {
  const std::string lines(text);
  absl::MutexLock lock(&mutex_);
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    Rates rates;
    double per_operation = 0;
    double per_stage = 0;
    if (words.size() != 4 || words[3].empty() || !absl::SimpleAtod(words[1], &per_operation) ||
        !absl::SimpleAtod(words[2], &per_stage) || !(per_operation >= -1) || !(per_stage >= 0)) {
      continue;
    }
    // "Step_Inference" names the kind; the name of a step's stage contains its number.
    const auto name = ParseRateName(words[0]);
    if (!name.has_value()) continue;
    if (per_operation >= 0) rates.per_operation = per_operation;
    rates.per_stage = per_stage;
    rates_[words[3]].try_emplace(*name, rates);
  }
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
  // Of n sorted ratios, returns the rank of the one that nine of ten jobs do not exceed.
  const auto rank = static_cast<size_t>(std::ceil(0.9 * static_cast<double>(sorted.size() + 1)));
  return {sorted[sorted.size() / 2], sorted[std::min(rank, sorted.size()) - 1]};
}

}  // namespace wan::server
