// The server without its wire: everything that VideoGeneration does, in the contract's own messages
// and absl::Status. The gRPC services are thin shells around this class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/jobs/model_registry.h"
#include "server/jobs/stats.h"
#include "server/store/artifact_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

struct JobServiceOptions {
  // Holds jobs.db, artifacts/ and staging/; made if missing. One server at a time.
  std::filesystem::path data_dir;
  // Most jobs that may wait.
  int queue_capacity = 100;
  // How many attempts a job may lose with the process or the device before it ends as FAILED.
  int max_attempts = 3;
  // Warm up as part of loading a model, and with which shapes (empty: a small one).
  bool warm_up_on_load = true;
  std::vector<VideoShape> warm_up_shapes;
  // Sinks of every job's and model task's telemetry, besides events and report.
  std::vector<SinkFactory> sinks;
  // What jobs record of the server that ran them.
  std::string server_version;
  // Must outlive the service.
  std::vector<StateListener*> listeners;
};

// What becomes of the running job when the server stops. Queued jobs always stay queued.
enum class StopMode {
  kFinish,   // it may go on for a grace time, and is requeued after that
  kRequeue,  // it stops within one step and runs again after the restart
};

// Thread-safe. Create, Cancel and Stop block for a durable write; no call but Stop blocks for a
// job. Names that are not of the contract's form are INVALID_ARGUMENT with a violation of the field
// `name` (`job` for Report), unknown ones NOT_FOUND. Violations of a generation request name its
// own fields ("width"), not a message around it.
class JobService {
 public:
  // Opens the data folder (see OpenSqliteJobStore for its errors, of which those of a storage that
  // is full, read-only or gone are none here: what can be read is served, new jobs are refused,
  // queued ones wait, and all goes on when the storage takes writes again), puts back what an
  // earlier process left: queued jobs stay queued, running ones are queued again with a Requeued
  // event, those of callers are cancelled, half-written artifacts are removed; and begins to run
  // jobs of models as they become ready. Engine and clock must outlive the service.
  static absl::StatusOr<std::unique_ptr<JobService>> Open(const JobServiceOptions& options,
                                                          Engine& engine, Clock& clock);
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;
  // Stop(kRequeue). All cursors must be gone.
  ~JobService();

  struct Created {
    wan::v1::Job job;
    // False: the request_id's job existed already.
    bool created = false;
  };

  // Accepts a job. `tied_to_caller`: the job ends with its caller, who calls Cancel.
  // INVALID_ARGUMENT with every violation at once; ALREADY_EXISTS (REQUEST_ID_REUSED);
  // FAILED_PRECONDITION (MODEL_NOT_READY); UNAVAILABLE (MODEL_LOADING, SERVER_STOPPING,
  // STORAGE_UNAVAILABLE) and RESOURCE_EXHAUSTED (QUEUE_FULL) with a retry delay.
  absl::StatusOr<Created> Create(const wan::v1::GenerationRequest& request, bool tied_to_caller);

  absl::StatusOr<wan::v1::Job> Get(std::string_view name) const;

  // INVALID_ARGUMENT for a bad page size, state or token; a token belongs to its states.
  absl::StatusOr<wan::v1::ListJobsResponse> List(const wan::v1::ListJobsRequest& request) const;

  // Ends a queued job at once and a running one within one step (it is RUNNING in the answer, and
  // will be CANCELLED). A job that has ended stays as it is. `reason` is what its log will say.
  absl::StatusOr<wan::v1::Job> Cancel(std::string_view name, std::string_view reason);

  // See EventLog::Watch. INVALID_ARGUMENT for a negative sequence.
  absl::StatusOr<std::unique_ptr<EventCursor>> Watch(std::string_view name, int64_t after_sequence,
                                                     std::function<void()> notify);

  // Of the latest attempt, up to now if it runs. NOT_FOUND (REPORT_NOT_FOUND) if it has never run.
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view name) const;

  struct OpenedArtifact {
    wan::v1::Artifact artifact;
    ArtifactReader reader;
  };
  // OUT_OF_RANGE for an offset past the end.
  absl::StatusOr<OpenedArtifact> OpenArtifact(std::string_view name, uint64_t offset) const;

  JobStats Stats() const;
  ModelRegistry& models();

  // Refuses new jobs, ends the running one as `mode` says, drops model tasks that have not begun,
  // makes everything durable and ends all cursors with UNAVAILABLE. Idempotent; reading still works
  // afterwards.
  void Stop(StopMode mode, absl::Duration grace);

 private:
  struct Parts;
  explicit JobService(std::unique_ptr<Parts> parts);

  absl::StatusOr<Created> CreateNew(const wan::v1::GenerationRequest& request,
                                    const std::string& digest, bool tied_to_caller);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace wan::server
