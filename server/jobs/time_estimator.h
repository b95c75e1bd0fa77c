// Estimates how long stages will take from how long they took before.
#pragma once

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

// The stages of a plan, summed by kind: what an estimate needs of them, in a hundredth of
// their memory. Immutable.
class PlannedWork {
 public:
  explicit PlannedWork(std::span<const StagePlan> stages);

  // The work that every resumed attempt repeats.
  PlannedWork BeforeSteps() const;

 private:
  friend class TimeEstimator;
  struct OfKind {
    StageKind kind;
    double flops = 0;
    int stages_with_flops = 0;  // stages whose time depends on their operations
    int other_stages = 0;
  };
  std::vector<OfKind> kinds_;
};

// Keeps a moving average for every model and kind of stage: seconds per floating-point operation,
// or seconds per stage where the plan counts no operations. The latest observation weighs most.
// Thread-safe.
class TimeEstimator {
 public:
  // Call when a stage of a plan has ended without error, with its wall time.
  void Observe(std::string_view model, const StagePlan& stage, double seconds);

  // Returns the estimated seconds of a plan's stages, run one after the other. Returns nullopt if
  // there are no stages, or if no denoising step of the model has been observed yet. A stage that
  // was never observed is taken to be as fast, per operation, as a denoising step.
  std::optional<double> Seconds(std::string_view model, const PlannedWork& work) const;

  // The rate that a device of this kind reaches at least, in operations a second. Positive.
  void Assume(double rate);

  // As Seconds, but for a model without observations it uses the assumed rate (nullopt without
  // one). Use it for answers to callers; decisions about jobs use Seconds.
  std::optional<double> Expected(std::string_view model, const PlannedWork& work) const;

  // Writes the learned rates as lines of text, and reads such lines; it skips damaged ones and
  // those about stages that were observed since.
  std::string Learned() const;
  void TakeOver(std::string_view rates);

  // Call when a job has completed: what Seconds said when it started, and its wall time.
  void ObserveJob(double estimated, double actual);

  // Factors for estimates of Seconds so that half, or nine of ten, of the jobs take no longer:
  // learned from the last 64 jobs of all models, cautious while there are few.
  struct Spread {
    double p50 = 1;
    double p90 = 1.5;
  };
  Spread JobSpread() const;
  // The same for what Expected says of the model: far apart while nothing was learned of it.
  Spread ExpectedSpread(std::string_view model) const;

 private:
  struct Rates {
    std::optional<double> per_operation;
    std::optional<double> per_stage;
  };
  using ModelRates = std::map<StageKind, Rates>;

  // Null while no denoising step of the model has been observed.
  const ModelRates* LearnedOf(std::string_view model) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  double assumed_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: nothing is assumed
  std::map<std::string, ModelRates, std::less<>> rates_ ABSL_GUARDED_BY(mutex_);
  // Actual by estimated time of the latest jobs, the oldest first.
  std::deque<double> ratios_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
