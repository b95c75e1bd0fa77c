// Estimates how long stages will take from how long they took before.
#pragma once

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

 private:
  struct Rates {
    std::optional<double> per_operation;
    std::optional<double> per_stage;
  };
  using ModelRates = std::map<StageKind, Rates>;

  mutable absl::Mutex mutex_;
  std::map<std::string, ModelRates, std::less<>> rates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
