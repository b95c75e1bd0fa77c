// How long work will take, learned from what it took.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/generation.h"

namespace wan::server {

// Keeps, for every model and stage family, the seconds per floating-point operation (seconds per
// stage where the plan has no operations), the latest counting most. Thread-safe.
class TimeEstimator {
 public:
  // A stage of the plan that ended well took so long.
  void Observe(std::string_view model, const StagePlan& stage, double seconds);

  // Of stages of a plan, one after the other. Unknown for a plan without stages, and until a
  // denoising step of the model has been observed; a stage never seen is taken to run as fast, per
  // operation, as a denoising step.
  std::optional<double> Seconds(std::string_view model, std::span<const StagePlan> stages) const;

 private:
  struct Rates {
    std::optional<double> per_operation;
    std::optional<double> per_stage;
  };
  // (model, stage family)
  using Key = std::pair<std::string, std::string>;

  mutable absl::Mutex mutex_;
  std::map<Key, Rates> rates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
