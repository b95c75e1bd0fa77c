// The interface through which metrics, health, logs and other parts learn of events in the server.
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

// How the server noticed that a device was lost.
enum class DeviceLoss {
  kError,   // a job or model task failed, and then the driver said that the device is lost
  kCanary,  // the check computation when the server starts failed or gave a wrong result
};

// Why a job was cancelled.
enum class StopCause {
  kCancelled,   // by a call of CancelJob
  kDeadline,    // the job's deadline has come
  kCallerGone,  // the caller of a job of Generate has gone
};

// Why a running job goes back into the queue.
enum class RequeueCause {
  kStopped,    // the server stops or is drained
  kPreempted,  // a job of higher priority takes its place
  kLost,       // the process or the device of its attempt was lost
  kStorage,    // the data folder takes no writes
};

// How long a completed job took, and the estimate that was made when the job began. If the job
// continued a savepoint, both times cover only the last attempt.
struct EstimateMet {
  absl::Duration taken;
  absl::Duration p50;
  absl::Duration p90;
  // The kind of stage that took the most time, and how long it took in total. Both members are set
  // only if `taken` exceeds p90.
  std::string slowest_stage = {};
  absl::Duration slowest_stage_taken = absl::ZeroDuration();
};

// The server's decision about a running job when it begins to stop.
struct StopChoice {
  std::string job;
  // The estimated time until the job's end; nullopt while unknown.
  std::optional<absl::Duration> left;
  // Time that would be lost if the server stopped the job now and resumed it after a restart.
  absl::Duration restart_cost;
  // How long the job may go on before the server stops it.
  absl::Duration may_go_on;
};

// The result of one attempt to send a webhook.
struct WebhookOutcome {
  enum class Kind { kDelivered, kRetried, kGivenUp };
  Kind kind = Kind::kDelivered;
  std::string job;  // the name of the job, "jobs/ID"
  std::string host;
  int attempts = 0;     // number of attempts so far, including this one
  std::string problem;  // why the attempt failed; empty: the webhook was delivered
};

// How many spans were exported and how many were lost (docs/operate/tracing.md).
struct SpansOutcome {
  int64_t exported = 0;
  int64_t failed = 0;        // lost because the collector refused them or could not be reached
  int64_t dropped = 0;       // lost because too many spans waited, or because the server stopped
  std::string problem = {};  // why some spans were not exported; empty: all were exported
};

// Says which limit of a retention rule was the reason for a removal.
enum class RetentionReason { kAge, kBytes, kCount };

// The result of one round of retention.
struct RetentionRound {
  struct Removed {
    // The state that the removed jobs had.
    wan::v1::JobState state = wan::v1::JOB_STATE_UNSPECIFIED;
    bool files_only = false;  // whether only the jobs' files were removed
    RetentionReason reason = RetentionReason::kAge;
    int64_t jobs = 0;
    int64_t bytes = 0;  // bytes of the removed files and database rows
  };
  std::vector<Removed> removed;  // one entry for each combination of state, files_only and reason
  double seconds = 0;
};

// Callers may call the functions on any thread. OnJobState and OnModelState are called in the order
// in which a job or model changes, under the lock of the jobs or models: they must be quick and
// must not call JobService or ModelTable.
class StateListener {
 public:
  virtual ~StateListener() = default;
  // A job has changed its state. `previous` is JOB_STATE_UNSPECIFIED if the job is new or
  // recovered.
  virtual void OnJobState(const wan::v1::Job& /*job*/, wan::v1::JobState /*previous*/) {}
  virtual void OnModelState(const wan::v1::Model& /*model*/) {}
  // OnJobCancelled, OnJobRequeued and OnEstimateMet are called in addition to OnJobState: when a
  // job has become CANCELLED, was requeued, or has become COMPLETED after a begin with an estimate.
  virtual void OnJobCancelled(const wan::v1::Job& /*job*/, StopCause /*cause*/) {}
  virtual void OnJobRequeued(const wan::v1::Job& /*job*/, RequeueCause /*cause*/) {}
  virtual void OnEstimateMet(const wan::v1::Job& /*job*/, const EstimateMet& /*met*/) {}
  // The server has refused jobs. Called with no lock held.
  virtual void OnJobsRejected(const absl::Status& /*problem*/, int /*jobs*/) {}
  // A change was synced to the job database; `operation` is "insert", "apply", "remove", "vacuum",
  // "webhook" or "check". Called on a thread of the store or of a waiting caller, so the function
  // must be quick.
  virtual void OnStoreWrite(std::string_view /*operation*/, absl::Duration /*taken*/) {}
  // If `status` is an error, the data folder refuses writes from now on, and `status` is the
  // reason; if `status` is OK, the folder takes writes again. Called with no lock held.
  virtual void OnStorage(const absl::Status& /*status*/) {}
  // If `status` is an error, the disk with the data folder has less free space than accepted jobs
  // and the setting disk_reserve need; the message has the numbers. If `status` is OK, the disk has
  // enough space again. OnDiskRoom is also called when the numbers change. Called with no lock
  // held.
  virtual void OnDiskRoom(const absl::Status& /*status*/) {}
  // A savepoint of a job (engine/api/savepoint.h) is on the disk; writing it took `seconds`. Called
  // with no lock held.
  virtual void OnSavepoint(const wan::v1::Job& /*job*/, int /*steps_done*/, double /*seconds*/) {}
  // The store now has the end of a job. Called with no lock held, but not for ends that an earlier
  // process has stored.
  virtual void OnJobEndStored() {}
  // An attempt to send a webhook has ended. Called with no lock held.
  virtual void OnWebhook(const WebhookOutcome& /*outcome*/) {}
  // Spans were exported, or were lost. Called with locks held, so the function must be quick.
  virtual void OnSpans(const SpansOutcome& /*outcome*/) {}
  // A round of the retention has removed something; called with no lock held.
  virtual void OnRetention(const RetentionRound& /*round*/) {}
  // An error has happened that no caller receives, for example a refused write or a file that could
  // not be removed.
  virtual void OnProblem(const absl::Status& /*problem*/) {}
  // A drain has begun: the server accepts and begins no jobs. Called with no lock held.
  virtual void OnDraining() {}
  // Undrain has reverted the drain. Called with no lock held.
  virtual void OnUndrained() {}
  // A job is running while the server begins to stop or to drain. Called with no lock held.
  virtual void OnStopChoice(const StopChoice& /*choice*/) {}
  // The device of a group has stopped working; other groups still serve. `group` is the number of
  // the group, and `device` the name of the device. Called with no lock held.
  virtual void OnGroupLost(int /*group*/, std::string_view /*device*/,
                           const absl::Status& /*problem*/) {}
  // The device of the last serving group has stopped working. From then on, this process runs no
  // job.
  virtual void OnDeviceLost(DeviceLoss /*cause*/, const absl::Status& /*problem*/) {}
};

// Describes the work whose telemetry a sink receives.
struct SinkContext {
  std::string model;                 // bare name
  std::string job;                   // "jobs/ID"; empty while a model is loaded or warmed up
  int attempt = 0;                   // 0 if there is no job
  VideoShape shape = {};             // the shape of the job's video
  std::string quality = {};          // word of the job's quality; empty if there is no job
  int group = 0;                     // the number of the device group
  wan::v1::TraceContext trace = {};  // the job's trace; an empty ID: none
};

// Makes a sink for one attempt of a job or one model task. Called on the executor's thread. The
// sink is destroyed before the result of the work is announced.
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
