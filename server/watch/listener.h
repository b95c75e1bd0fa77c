// How metrics, health and logs hear what happens.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "engine/api/recorder.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Called from any thread, in the order of what happens to a job or model, and with the lock held
// that keeps this order: must be quick and must not call the service or the registry.
class StateListener {
 public:
  virtual ~StateListener() = default;
  // The job as it is now; `previous` is JOB_STATE_UNSPECIFIED for a new or recovered one.
  virtual void OnJobState(const wan::v1::Job& /*job*/, wan::v1::JobState /*previous*/) {}
  virtual void OnModelState(const wan::v1::Model& /*model*/) {}
  // The data folder refuses writes from now on, and why; OK: it takes them again. New jobs are
  // refused and queued ones wait in between. Called with no lock held.
  virtual void OnStorage(const absl::Status& /*status*/) {}
  // Something that no caller is told: a write that the store refused, a file that stays behind.
  virtual void OnProblem(const absl::Status& /*problem*/) {}
  // The engine's device works no more. No job runs in this process from here on.
  virtual void OnDeviceLost(const absl::Status& /*problem*/) {}
};

// Whose telemetry a sink will see.
struct SinkContext {
  std::string model;  // bare name
  std::string job;    // "jobs/ID"; empty for loading and warming a model
  int attempt = 0;    // 0 without a job
};

// Makes a sink for one attempt of a job or one model task. Called by the executor's thread; the
// sink dies before the work's result is announced.
using SinkFactory = std::function<std::unique_ptr<TelemetrySink>(const SinkContext&)>;

}  // namespace wan::server
