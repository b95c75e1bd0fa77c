// The two telemetry sinks that every attempt has: one makes its events, one its report.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "server/jobs/time_estimator.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// Turns spans into the events StageStarted and StageFinished and, after each step's inference,
// StepProgress with the estimated time left. Not thread-safe; a Recorder calls its sinks one at a
// time.
class EventSink final : public TelemetrySink {
 public:
  // Receives events in order; `progress` is set when a step has ended.
  using Emit = std::function<void(std::vector<wan::v1::Event> events,
                                  const std::optional<wan::v1::StepProgress>& progress)>;

  // `estimator` must outlive the sink, which feeds it with the time of every stage of the plan.
  EventSink(std::string model, int attempt, TimeEstimator& estimator, Emit emit);

  // Sets the stages to come. Call it before the first of them starts; until then events carry no
  // estimate.
  void SetPlan(std::vector<StagePlan> stages);

  // The work goes on behind the first `steps_done` of `steps` steps: emits Resumed, and the
  // progress as it is now. Called while no span of the plan is open.
  void Resume(int steps_done, int steps);

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  // Removes the stage from those to come and feeds the estimator.
  void FinishStage(const SpanRecord& record);
  wan::v1::Event NewEvent() const;

  const std::string model_;
  const int attempt_;
  TimeEstimator& estimator_;
  const Emit emit_;
  std::vector<StagePlan> remaining_;
};

// Collects the report's table of stages. Snapshot may be called from any thread at any time.
class ReportSink final : public TelemetrySink {
 public:
  // `header` is the report without its stages.
  explicit ReportSink(wan::v1::JobReport header);

  // Returns the header with every stage that has ended, ordered by start.
  wan::v1::JobReport Snapshot() const;

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  struct Slot {
    Stage stage;
    absl::Time start;
    std::optional<wan::v1::StageReport> report;  // nothing while the stage runs
  };

  const wan::v1::JobReport header_;
  mutable absl::Mutex mutex_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
