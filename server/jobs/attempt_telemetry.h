// Measures one attempt: makes its events and its report, and feeds the sinks that the service adds.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "server/jobs/device_shares.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/job_states.h"
#include "server/jobs/progress_watch.h"
#include "server/jobs/runner_parts.h"

namespace wan::server {

// For one attempt, on the executor's thread; it must go before the attempt's result is announced.
// Both arguments must outlive it. When it is made it records the wait in the queue, and begins to
// measure the group's devices. While stages run, their events reach the job's watchers, and at the
// end of a step the job gives way to another if it should (JobStates::PreemptRunning).
class AttemptTelemetry {
 public:
  AttemptTelemetry(const RunnerParts& parts, const Attempt& attempt);

  Recorder& recorder() { return recorder_; }

  // Call it before the first stage of the plan.
  void SetPlan(const GenerationPlan& plan);
  // Writes to the report what is to be done, and with what; `image_bytes` is 0 without an image.
  void DescribePlan(const GenerationPlan& plan, const ModelDescription& model, size_t image_bytes);
  // The work goes on after this many steps, which an earlier attempt has done.
  void Resume(int steps_done);
  // The attempt has ended. Adds to the report what its devices did.
  void Finish();

 private:
  // The attempt's own sinks and those of the service, for the recorder.
  std::vector<TelemetrySink*> Views();
  // Writes to the report where the attempt runs, and how its model was loaded.
  void DescribeSurroundings();

  const RunnerParts& parts_;
  const Attempt& attempt_;
  EventSink events_;
  const std::vector<std::unique_ptr<TelemetrySink>> extra_;
  ProgressSink progress_;
  Recorder recorder_;
  std::unique_ptr<DeviceTimeline> timeline_;  // null: the monitor has none
  std::unique_ptr<DeviceShares> shares_;
};

}  // namespace wan::server
