// The telemetry sinks that every attempt has: EventSink makes its events, ReportSink its report.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  // Receives events in their order; `progress` is set when a step has ended.
  using Emit = std::function<void(std::vector<wan::v1::Event> events,
                                  const std::optional<wan::v1::StepProgress>& progress)>;

  // The sink tells `estimator` how long every stage of the plan took; `estimator` must outlive the
  // sink.
  EventSink(std::string model, int attempt, TimeEstimator& estimator, Emit emit);

  // Sets the stages of the plan. Call SetPlan before the first of them starts; earlier events carry
  // no estimate.
  void SetPlan(std::vector<StagePlan> stages);

  // Call Resume when the attempt continues after `steps_done` of `steps` steps, while no span of
  // the plan is open. Emits the event Resumed and the current progress.
  void Resume(int steps_done, int steps);

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  // Removes the stage from `remaining_` and tells the estimator how long it took.
  void FinishStage(const SpanRecord& record);
  wan::v1::Event NewEvent() const;

  const std::string model_;
  const int attempt_;
  TimeEstimator& estimator_;
  const Emit emit_;
  std::vector<StagePlan> remaining_;
};

// Keeps the report of the last span of one kind that ended without error.
class SpanReportSink final : public TelemetrySink {
 public:
  explicit SpanReportSink(StageKind kind) : kind_(kind) {}
  const std::optional<wan::v1::StageReport>& report() const { return report_; }

  void OnSpanEnd(const SpanRecord& record) override;

 private:
  const StageKind kind_;
  std::optional<wan::v1::StageReport> report_;
};

// Collects a job's report. Thread-safe.
class ReportSink final : public TelemetrySink {
 public:
  // `header` is the report before it has any stages.
  explicit ReportSink(wan::v1::JobReport header);

  // Calls `change` with the report's header, under the sink's lock.
  void Annotate(const std::function<void(wan::v1::JobReport& header)>& change);

  // Call Resume when the attempt continues after `steps_done` steps of earlier attempts. If the
  // attempt repeats steps that it has run itself, the report leaves out their first run.
  void Resume(int steps_done);

  // Returns the header with every stage that has ended, ordered by start, and with the state,
  // request, image and provenance of `job`.
  wan::v1::JobReport Snapshot(const wan::v1::Job& job) const;

  // Returns the name of the kind of stage on which the most time was spent so far, and that time.
  // Ignores stages that enclose other stages or wait for other stages. The name is empty if no
  // stage has ended.
  std::pair<std::string, absl::Duration> SlowestKind() const;

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  struct Slot {
    Stage stage;
    absl::Time start;
    std::optional<wan::v1::StageReport> report;  // nothing while the stage is running
  };

  mutable absl::Mutex mutex_;
  wan::v1::JobReport header_ ABSL_GUARDED_BY(mutex_);
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
