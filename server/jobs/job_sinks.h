// The two sinks of every attempt: its events and its report.
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

// Turns spans into StageStarted, StageFinished and, after a step's inference, StepProgress with the
// time left. Used as a Recorder uses its sinks: one call at a time.
class EventSink final : public TelemetrySink {
 public:
  // Takes events in their order, with the step's progress if there is any.
  using Emit = std::function<void(std::vector<wan::v1::Event> events,
                                  const std::optional<wan::v1::StepProgress>& progress)>;

  // `estimator` must outlive the sink; it learns from the stages of the plan.
  EventSink(std::string model, int attempt, TimeEstimator& estimator, Emit emit);

  // What lies ahead; before it is known there are no estimates. Called while no span is open that
  // belongs to the plan.
  void SetPlan(std::vector<StagePlan> stages);

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  // Takes the stage from what lies ahead and learns from it.
  void FinishStage(const SpanRecord& record);
  wan::v1::Event NewEvent() const;

  const std::string model_;
  const int attempt_;
  TimeEstimator& estimator_;
  const Emit emit_;
  std::vector<StagePlan> remaining_;
};

// Collects the stage table. Snapshot may be called by any thread at any time.
class ReportSink final : public TelemetrySink {
 public:
  // `header`: a report without stages.
  explicit ReportSink(wan::v1::JobReport header);

  // Every stage that has ended, in the order of their start.
  wan::v1::JobReport Snapshot() const;

  void OnSpanStart(const SpanStart& start) override;
  void OnSpanEnd(const SpanRecord& record) override;

 private:
  struct Slot {
    std::string stage;
    absl::Time start;
    std::optional<wan::v1::StageReport> report;  // nothing while the stage runs
  };

  const wan::v1::JobReport header_;
  mutable absl::Mutex mutex_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
