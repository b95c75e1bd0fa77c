// Estimates how long stages take from the times of earlier stages.
#pragma once

#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/generation.h"

namespace wan::server {

// The stages of a plan that take the same time per operation.
struct WayOfWork {
  StageKind kind = StageKind::kStepInference;
  StageMethod method = StageMethod::kExact;
  int exact_blocks = 0;  // StagePlan::exact_blocks

  // clang-tidy mistakes the 0 in comparisons with the result for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const WayOfWork&, const WayOfWork&) = default;
};

// The operations of a plan's stages, added up by kind of stage. Has only the figures for an
// estimate, and so takes a hundredth of the memory of the StagePlans. Immutable.
class PlannedWork {
 public:
  explicit PlannedWork(std::span<const StagePlan> stages);

  // Returns the work before the first step, which every resumed attempt repeats.
  PlannedWork BeforeSteps() const;

 private:
  friend class TimeEstimator;
  struct OfKind {
    WayOfWork way;
    double flops = 0;
    int stages_with_flops = 0;  // number of stages whose time is estimated from their operations
    int other_stages = 0;
  };
  std::vector<OfKind> kinds_;
};

// Keeps a moving average for every model and way of work: seconds per floating-point operation, or
// seconds per stage if the plan counts no operations. The latest observation weighs most.
// Thread-safe.
class TimeEstimator {
 public:
  // Call Observe when a stage of a plan has ended without error, with the stage's wall time.
  void Observe(std::string_view model, const StagePlan& stage, double seconds);

  // Returns the estimated seconds of a plan's stages, run one after the other. Returns nullopt if
  // there are no stages, or if no denoising step of the model has been observed yet. Assumes that a
  // stage that was never observed is as fast, per operation, as a denoising step.
  std::optional<double> Seconds(std::string_view model, const PlannedWork& work) const;

  // Sets the rate, in operations per second, that a device of this kind reaches at least. The rate
  // must be positive.
  void Assume(double rate);

  // Like Seconds, but uses the rate set by Assume for a model without observations; returns nullopt
  // if no rate was set. Use Expected for answers to callers; decisions about jobs use Seconds.
  std::optional<double> Expected(std::string_view model, const PlannedWork& work) const;

  // Learned returns the learned rates as lines of text, and TakeOver reads such lines in another
  // process. TakeOver skips damaged lines, and lines about stages that this process has observed.
  std::string Learned() const;
  void TakeOver(std::string_view rates);

  // Call ObserveJob when a job has completed: `estimated` is the result of Seconds when the job
  // started, `actual` is the job's wall time, both in seconds.
  void ObserveJob(double estimated, double actual);

  // Factors by which to multiply a result of Seconds to get the median and the 90th percentile of a
  // job's time. JobSpread computes the factors from the last 64 jobs of all models, or returns the
  // defaults while there are few jobs.
  struct Spread {
    double p50 = 1;
    double p90 = 1.5;
  };
  Spread JobSpread() const;
  // Returns the factors for results of Expected; p90 is larger while no step of the model was
  // observed.
  Spread ExpectedSpread(std::string_view model) const;

 private:
  struct Rates {
    std::optional<double> per_operation;
    std::optional<double> per_stage;
  };
  using ModelRates = std::map<WayOfWork, Rates>;

  // Returns the rates of the most exact kind of steps that computed their blocks; rates.end() if no
  // step that computed its blocks was observed.
  static ModelRates::const_iterator StepOf(const ModelRates& rates);
  // Returns the model's rates; null while no denoising step of the model was observed.
  const ModelRates* LearnedOf(std::string_view model) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  double assumed_ ABSL_GUARDED_BY(mutex_) = 0;  // operations per second; 0: Assume was not called
  std::map<std::string, ModelRates, std::less<>> rates_ ABSL_GUARDED_BY(mutex_);
  // For each of the latest jobs, the actual time divided by the estimated time; the oldest comes
  // first.
  std::deque<double> ratios_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
