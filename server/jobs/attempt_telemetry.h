// Measures one attempt: makes its events and its report, and feeds the sinks that the service adds.
#pragma once

#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/job_states.h"
#include "server/jobs/progress_watch.h"
#include "server/jobs/runner_parts.h"

namespace wan::server {

// Use one AttemptTelemetry for each attempt, on the executor's thread, and destroy the object
// before the attempt's result is announced. Both arguments of the constructor must outlive the
// object. The constructor records how long the job was queued, and begins to measure the group's
// devices. While stages run, their events reach the job's watchers, and at the end of a step the
// job gives way to a job of higher priority (JobStates::PreemptRunning).
class AttemptTelemetry {
 public:
  AttemptTelemetry(const RunnerParts& parts, const Attempt& attempt);

  Recorder& recorder() { return recorder_; }

  // Call SetPlan before the first stage of the plan begins.
  void SetPlan(const GenerationPlan& plan);
  // Writes the plan and the model to the report.
  void DescribePlan(const GenerationPlan& plan, const ModelDescription& model);
  // Call Resume when the attempt continues after `steps_done` steps of an earlier attempt.
  void Resume(int steps_done);
  // Call Finish when the attempt has ended. Adds each device's share of the work to the report.
  void Finish();

 private:
  // Returns the sinks for the attempt's Recorder: the attempt's own sinks, and the sinks that the
  // service adds.
  std::vector<TelemetrySink*> Views();
  // Adds the facts around the attempt to the report: the server, the device and the model's load.
  void DescribeSurroundings();

  const RunnerParts& parts_;
  const Attempt& attempt_;
  EventSink events_;
  const std::vector<std::unique_ptr<TelemetrySink>> extra_;
  ProgressSink progress_;
  int steps_ = 0;  // number of steps of the plan
  Recorder recorder_;
  std::unique_ptr<DeviceTimeline> timeline_;  // null: the monitor records no timeline
  std::unique_ptr<GroupProbe> devices_;       // null: a group of one device, which stages report
};

}  // namespace wan::server
