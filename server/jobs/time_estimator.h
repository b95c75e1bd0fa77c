// How long work will take, learned from what it took.
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

// The stages of a plan, added up by their families: all that an estimate needs of them, in a
// hundredth of their memory. Immutable.
class PlannedWork {
 public:
  explicit PlannedWork(std::span<const StagePlan> stages);

 private:
  friend class TimeEstimator;
  struct Family {
    std::string name;
    double flops = 0;
    int stages_with_flops = 0;  // whose operations are what takes their time
    int other_stages = 0;
  };
  std::vector<Family> families_;
};

// Keeps, for every model and stage family, the seconds per floating-point operation (seconds per
// stage where the plan has no operations), the latest counting most. Thread-safe.
class TimeEstimator {
 public:
  // A stage of the plan that ended well took so long.
  void Observe(std::string_view model, const StagePlan& stage, double seconds);

  // Of stages of a plan, one after the other. Unknown for a plan without stages, and until a
  // denoising step of the model has been observed; a stage never seen is taken to run as fast, per
  // operation, as a denoising step.
  std::optional<double> Seconds(std::string_view model, const PlannedWork& work) const;

 private:
  struct Rates {
    std::optional<double> per_operation;
    std::optional<double> per_stage;
  };
  // By stage family.
  using ModelRates = std::map<std::string, Rates, std::less<>>;

  mutable absl::Mutex mutex_;
  std::map<std::string, ModelRates, std::less<>> rates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
