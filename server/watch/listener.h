// The interface through which metrics, health, logs and others learn what happens.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// How a device was found to be lost.
enum class DeviceLoss {
  kError,   // after a job or model task failed, the driver reported the device as lost
  kCanary,  // the check computation at the start failed or gave a wrong result
};

// Why a job is cancelled.
enum class StopCause {
  kCancelled,   // a call of CancelJob
  kDeadline,    // the job's deadline has come
  kCallerGone,  // the caller of a job of Generate went away
};

// Why a running job goes back to the queue.
enum class RequeueCause {
  kStopped,    // the server stops or is drained
  kPreempted,  // a job of higher priority took over
  kLost,       // the process or the device was lost
  kStorage,    // the data folder takes no writes
};

// The duration of a completed job, and the estimate when it began. For a job that continued a
// savepoint, both cover only the last attempt.
struct EstimateMet {
  absl::Duration taken;
  absl::Duration p50;
  absl::Duration p90;
  // The kind of stage that took the most time, and its total. Set only if `taken` exceeds p90.
  std::string slowest_stage = {};
  absl::Duration slowest_stage_taken = absl::ZeroDuration();
};

// The decision about a running job when the server begins to stop.
struct StopChoice {
  std::string job;
  // The estimated time until the job's end; nullopt while unknown.
  std::optional<absl::Duration> left;
  // Time that would be lost if the job were stopped now and resumed after a restart.
  absl::Duration restart_cost;
  // How long the job may continue before it is stopped.
  absl::Duration may_go_on;
};

// The result of an attempt to send a webhook.
struct WebhookOutcome {
  enum class Kind { kDelivered, kRetried, kGivenUp };
  Kind kind = Kind::kDelivered;
  std::string job;  // "jobs/ID"
  std::string host;
  int attempts = 0;     // attempts so far, including this one
  std::string problem;  // empty: delivered
};

// The numbers of spans that were exported and lost (docs/operate/tracing.md).
struct SpansOutcome {
  int64_t exported = 0;
  int64_t failed = 0;        // the collector refused them or stayed out of reach
  int64_t dropped = 0;       // too many waited, or the server stopped
  std::string problem = {};  // why some were not exported; empty: all were
};

// The limit of a retention rule that removed something.
enum class RetentionReason { kAge, kBytes, kCount };

// The removals of one retention round.
struct RetentionRound {
  struct Removed {
    wan::v1::JobState state = wan::v1::JOB_STATE_UNSPECIFIED;  // the state of the removed jobs
    bool files_only = false;                                   // only files were removed
    RetentionReason reason = RetentionReason::kAge;
    int64_t jobs = 0;
    int64_t bytes = 0;  // bytes of files and database rows
  };
  std::vector<Removed> removed;  // one entry for each state, files_only and reason
  double seconds = 0;
};

// Calls come from any thread. OnJobState and OnModelState are called in the order of a job's or
// model's changes, under the lock of the jobs or models: they must be quick and must not call
// JobService or ModelTable.
class StateListener {
 public:
  virtual ~StateListener() = default;
  // A job has changed its state. `previous` is JOB_STATE_UNSPECIFIED if the job is new or
  // recovered.
  virtual void OnJobState(const wan::v1::Job& /*job*/, wan::v1::JobState /*previous*/) {}
  virtual void OnModelState(const wan::v1::Model& /*model*/) {}
  // Called in addition to OnJobState when a job has become CANCELLED, was requeued, or has become
  // COMPLETED after it began with an estimate.
  virtual void OnJobCancelled(const wan::v1::Job& /*job*/, StopCause /*cause*/) {}
  virtual void OnJobRequeued(const wan::v1::Job& /*job*/, RequeueCause /*cause*/) {}
  virtual void OnEstimateMet(const wan::v1::Job& /*job*/, const EstimateMet& /*met*/) {}
  // Jobs were refused. Called with no lock held.
  virtual void OnJobsRejected(const absl::Status& /*problem*/, int /*jobs*/) {}
  // A change was synced to the job database: "insert", "apply", "remove", "vacuum", "webhook" or
  // "check". Called on a thread of the store or of the waiting caller: must be quick.
  virtual void OnStoreWrite(std::string_view /*operation*/, absl::Duration /*taken*/) {}
  // The data folder refuses writes from now on, for the reason in `status`; OK: it takes them
  // again. Called with no lock held.
  virtual void OnStorage(const absl::Status& /*status*/) {}
  // If not OK, the data folder's disk has less free space than accepted jobs and the setting
  // disk_reserve need; the message has the numbers. OK: it has enough again. Also called when the
  // numbers change. Called with no lock held.
  virtual void OnDiskRoom(const absl::Status& /*status*/) {}
  // A savepoint of a job (engine/api/savepoint.h) is on the disk; writing it took `seconds`. Called
  // with no lock held.
  virtual void OnSavepoint(const wan::v1::Job& /*job*/, int /*steps_done*/, double /*seconds*/) {}
  // The end of a job was stored. Called with no lock held; not called for ends stored by an earlier
  // process.
  virtual void OnJobEndStored() {}
  // An attempt to send a webhook has ended. Called with no lock held.
  virtual void OnWebhook(const WebhookOutcome& /*outcome*/) {}
  // Spans were exported or lost. Called with locks held: must be quick.
  virtual void OnSpans(const SpansOutcome& /*outcome*/) {}
  // Called with no lock held after a round that removed something.
  virtual void OnRetention(const RetentionRound& /*round*/) {}
  // An error that no caller receives, for example a refused write or a file that could not be
  // removed.
  virtual void OnProblem(const absl::Status& /*problem*/) {}
  // A drain has begun: the server accepts and begins no jobs. Called with no lock held.
  virtual void OnDraining() {}
  // The drain was reverted. Called with no lock held.
  virtual void OnUndrained() {}
  // A job runs while the server begins to stop or to drain. Called with no lock held.
  virtual void OnStopChoice(const StopChoice& /*choice*/) {}
  // The device of a group no longer works; other groups still serve. `group` is its number,
  // `device` names it. Called with no lock held.
  virtual void OnGroupLost(int /*group*/, std::string_view /*device*/,
                           const absl::Status& /*problem*/) {}
  // The device of the last group no longer works. No job runs in this process after this.
  virtual void OnDeviceLost(DeviceLoss /*cause*/, const absl::Status& /*problem*/) {}
};

// Describes the work whose telemetry a sink receives.
struct SinkContext {
  std::string model;                 // bare name
  std::string job;                   // "jobs/ID"; empty while a model is loaded or warmed up
  int attempt = 0;                   // 0 if there is no job
  VideoShape shape = {};             // of the job's video
  int group = 0;                     // the number of the device group
  wan::v1::TraceContext trace = {};  // the job's trace; an empty ID: none
};

// Makes a sink for one attempt of a job or one model task. Called on the executor's thread. The
// sink is destroyed before the result of that work is announced.
using SinkFactory = std::function<std::unique_ptr<TelemetrySink>(const SinkContext&)>;

// Makes one sink with each factory, for one attempt of a job or one model task.
inline std::vector<std::unique_ptr<TelemetrySink>> MakeSinks(
    const std::vector<SinkFactory>& factories, const SinkContext& context) {
  std::vector<std::unique_ptr<TelemetrySink>> sinks;
  sinks.reserve(factories.size());
  for (const SinkFactory& factory : factories) sinks.push_back(factory(context));
  return sinks;
}

}  // namespace wan::server
