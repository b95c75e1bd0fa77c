// Detects a running job that makes no progress, for the server's liveness check.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "server/jobs/time_estimator.h"

namespace wan::server {

// Keeps the running stages, and the longest time that each stage may take. A stage is stuck once it
// has taken both longer than kLeast and more than kTimes as long as its estimate. Stages that
// cannot be estimated never count as stuck: a load from a slow disk, or the first step of a model
// that this process has not run, may take hours and still be sound. Thread-safe.
class ProgressWatch {
 public:
  static constexpr absl::Duration kLeast = absl::Minutes(15);
  static constexpr double kTimes = 10;

  // `clock` must outlive the watch.
  explicit ProgressWatch(Clock& clock) : clock_(clock) {}

  // Call Begin when a stage of `job` ("jobs/ID") begins; `expected` is its estimated duration.
  void Begin(const std::string& job, const Stage& stage, absl::Duration expected);
  // Call End when the stage has ended. Does nothing if Begin was not called for the stage.
  void End(const std::string& job, const Stage& stage);
  // Removes all stages of the job; call EndJob when the attempt has ended.
  void EndJob(const std::string& job);

  // Returns OK, or DEADLINE_EXCEEDED with a message that names job, stage and both durations.
  absl::Status Check() const;

 private:
  struct Running {
    std::string job;
    Stage stage;
    int64_t begin_nanos;
    absl::Duration expected;
  };

  Clock& clock_;
  mutable absl::Mutex mutex_;
  std::vector<Running> running_ ABSL_GUARDED_BY(mutex_);
};

// Reports the stages of one attempt to a watch. Not thread-safe; a Recorder calls its sinks one at
// a time.
class ProgressSink final : public TelemetrySink {
 public:
  // Both `watch` and `estimator` must outlive the sink.
  ProgressSink(std::string job, std::string model, const TimeEstimator& estimator,
               ProgressWatch& watch);
  // Calls ProgressWatch::EndJob for the job.
  ~ProgressSink() override;

  // Sets the attempt's stages. The sink does not report stages that begin before SetPlan, or whose
  // operations the plan does not count.
  void SetPlan(std::vector<StagePlan> stages) { stages_ = std::move(stages); }

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  const std::string job_;
  const std::string model_;
  const TimeEstimator& estimator_;
  ProgressWatch& watch_;
  std::vector<StagePlan> stages_;
};

}  // namespace wan::server
