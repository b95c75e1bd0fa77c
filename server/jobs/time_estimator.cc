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

// The words that follow the name of a stage in the learned rates: "Step_Inference/eight_bits". The
// number of exact blocks follows if it is not 0: "Step_Inference/eight_bits/2". A server that does
// not know a name skips its line.
constexpr std::array<std::pair<StageMethod, std::string_view>, 4> kMethods = {
    {{StageMethod::kExact, ""},
     {StageMethod::kEightBits, "eight_bits"},
     {StageMethod::kReuse, "reuse"},
     {StageMethod::kTinyDecoder, "tiny"}}};

std::string NameOfRate(const WayOfWork& way) {
  std::string name(NameOf(way.kind));
  for (const auto& [method, word] : kMethods) {
    if (method == way.method && !word.empty()) absl::StrAppend(&name, "/", std::string(word));
  }
  if (way.exact_blocks > 0) absl::StrAppend(&name, "/", way.exact_blocks);
  return name;
}

// Inverse of NameOfRate.
std::optional<WayOfWork> ParseRateName(std::string_view name) {
  const std::vector<std::string> words = absl::StrSplit(std::string(name), '/');
  const std::optional<StageKind> kind = ParseStageKind(words.front());
  if (!kind.has_value()) return std::nullopt;
  WayOfWork way{*kind};
  for (const auto& [method, word] : kMethods) {
    if (words.size() > 1 && words[1] == word) way.method = method;
  }
  if (words.size() > 2 && !absl::SimpleAtoi(words[2], &way.exact_blocks)) return std::nullopt;
  // Other texts would be read as a rate of another way.
  return NameOfRate(way) == name ? std::optional(way) : std::nullopt;
}

WayOfWork WayOf(const StagePlan& stage) {
  return {stage.stage.kind, stage.method, stage.exact_blocks};
}

// Whether the plan counts the stage's operations; if so, the time is estimated from the operations.
bool HasWork(const StagePlan& stage) { return stage.flops.value_or(0) > 0; }

}  // namespace

PlannedWork::PlannedWork(std::span<const StagePlan> stages) {
  for (const StagePlan& stage : stages) {
    const WayOfWork way = WayOf(stage);
    auto sum = std::find_if(kinds_.begin(), kinds_.end(),
                            [&](const OfKind& known) { return known.way == way; });
    if (sum == kinds_.end()) sum = kinds_.insert(sum, OfKind{way});
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
    const StageKind kind = sum.way.kind;
    return kind == StageKind::kStepLoading || kind == StageKind::kStepInference ||
           kind == StageKind::kVaeDecoding || kind == StageKind::kVideoEncoding;
  });
  return before;
}

void TimeEstimator::Observe(std::string_view model, const StagePlan& stage, double seconds) {
  absl::MutexLock lock(&mutex_);
  Rates& rates = rates_[std::string(model)][WayOf(stage)];
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
    const auto found = of_model.find(of_kind.way);
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
  // Ignore steps that reuse blocks: their times say nothing about steps that compute the blocks. Of
  // those with 8 bits the last in the map has the most exact blocks.
  auto most_exact = rates.end();
  for (auto entry = rates.begin(); entry != rates.end(); ++entry) {
    if (entry->first.kind != StageKind::kStepInference) continue;
    if (entry->first.method == StageMethod::kExact) return entry;
    if (entry->first.method == StageMethod::kEightBits) most_exact = entry;
  }
  return most_exact;
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
    for (const auto& [way, rates] : of_model) {
      // -1 stands for an unknown rate. The model's name comes last because it may contain spaces.
      absl::StrAppend(&lines, NameOfRate(way), " ",
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
    const std::optional<WayOfWork> way = ParseRateName(words[0]);
    if (!way.has_value()) continue;
    if (per_operation >= 0) rates.per_operation = per_operation;
    rates.per_stage = per_stage;
    rates_[words[3]].try_emplace(*way, rates);
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
