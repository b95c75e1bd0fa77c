// Implements the service VideoGeneration without gRPC, with the contract's messages and
// absl::Status. The gRPC services are thin shells around JobService.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/auth/model_roots.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_listing.h"
#include "server/jobs/job_stats.h"
#include "server/jobs/model_operations.h"
#include "server/jobs/model_table.h"
#include "server/jobs/stop_mode.h"
#include "server/jobs/turns.h"
#include "server/quota/quotas.h"
#include "server/retention/retention_policy.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

struct CheckedJobs;
struct JobUpdate;
struct NewJob;

struct JobServiceOptions {
  // The folder of jobs.db, artifacts/, savepoints/ and staging/; created if missing. Only one
  // server at a time can use it.
  std::filesystem::path data_dir;
  // Most jobs in the queue.
  int queue_capacity = 100;
  // A job ends as FAILED after this many attempts were lost with the process or the device.
  int max_attempts = 3;
  // How long a job that is tied to its caller and has a request_id continues after its last caller
  // has gone.
  absl::Duration caller_grace = absl::Seconds(30);
  // Least time between two savepoints of a job; zero: one after every step.
  absl::Duration savepoint_interval = absl::Seconds(30);
  // A waiting job preempts a running one, at the end of a step, if its priority is higher by this
  // much or more; 0: never.
  int preempt_priority_gap = 0;
  // Decides which ended jobs and files are removed; by default none.
  RetentionPolicy retention;
  // A new job is refused if less than this would be left free, in bytes, after all accepted jobs
  // have written their files.
  uint64_t disk_reserve_bytes = 0;
  // Returns the free bytes of the disk of `data_dir`; nothing if unknown. Null: ask the file
  // system. Called on any thread.
  std::function<std::optional<uint64_t>()> free_bytes;
  // Called to make writes to the job database durable; null: fdatasync.
  std::function<absl::Status()> sync_database;
  // Whether loading a model includes a warm-up, and with which shapes (empty: one small video).
  bool warm_up_on_load = true;
  std::vector<VideoShape> warm_up_shapes;
  // Make further telemetry sinks for every job and every load of a model.
  std::vector<SinkFactory> sinks;
  // The devices of each group as the settings write them, "cuda:0,1", for logs, reports and
  // metrics; empty: what the engines say.
  std::vector<std::string> device_names;
  // Whether a device group may have a model; null: every group may have every model.
  DeviceGroups::MayHaveModel may_have;
  // The folders below which the models must lie that callers load.
  ModelRoots model_roots;
  // Returns what is wrong with a request's webhook_url; empty if it is valid.
  std::function<std::string(std::string_view url)> webhook_problem = [](std::string_view) {
    return std::string("must be empty, because this server sends no webhooks");
  };
  // Returns a new trace for a job whose caller sent none. Null: such a job has no trace.
  std::function<wan::v1::TraceContext()> new_trace;
  // The version that each job records in its provenance.
  std::string server_version;
  // The commit from which the server was built, for reports; empty if unknown.
  std::string server_revision;
  // The listeners must outlive the service.
  std::vector<StateListener*> listeners;
  // Must outlive the service. Call QuotasChanged after the quotas have changed.
  const Quotas* quotas = nullptr;  // null: nothing is limited
};

// Thread-safe. Changes are answered once the disk has them. Calls that take a `done` do not block
// until then: `done` is called once, on the caller's thread or on one of the service's, and must
// not block. Calls that also take a `post` use it for steps that may block after a wait. Reads
// never wait for a change to reach the disk. Only Stop waits for jobs.
//
// A name that does not have the contract's form is INVALID_ARGUMENT with a violation of the field
// `name` (`job` for Report and Receipt); an unknown name is NOT_FOUND. The fields of a generation
// request's violations are relative to it: "width", not "request.width".
class JobService {
 public:
  // Opens the data folder, takes over what an earlier process left, and begins to run jobs as their
  // models become ready. Queued jobs stay queued, running jobs are queued again with a Requeued
  // event, jobs that were tied to a caller are cancelled, and half-written artifacts are removed.
  // The engine and the clock must outlive the service.
  //
  // Fails like OpenSqliteJobStore, except that a folder that is full, read-only or missing is not
  // an error. The service then serves what it can read, refuses new jobs and lets queued jobs wait,
  // and recovers by itself when the folder takes writes again.
  static absl::StatusOr<std::unique_ptr<JobService>> Open(const JobServiceOptions& options,
                                                          Engine& engine, Clock& clock);
  // Opens the service with one engine for each device group; the index is the group's number.
  static absl::StatusOr<std::unique_ptr<JobService>> Open(const JobServiceOptions& options,
                                                          const std::vector<Engine*>& engines,
                                                          Clock& clock);
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;
  // Calls Stop(kRequeue). All cursors must have been destroyed, and every `done` must have been
  // called.
  ~JobService();

  using Done = std::function<void(const absl::Status&)>;
  using JobDone = std::function<void(absl::StatusOr<wan::v1::Job>)>;

  struct Created {
    wan::v1::Job job;
    // False if `job` was created by an earlier call with the same request_id.
    bool created = false;
    // Whether the job is tied to this caller, who must then call CallerWentAway or CallerDone.
    bool holds = false;
  };

  // Facts about the caller who asks for a job.
  struct CallerFacts {
    // Whether the job is cancelled when its callers have gone; calls with one request_id share a
    // job.
    bool tied = false;
    std::string owner =
        {};  // the principal; empty on a server that does not authenticate its callers
    // The trace that the caller sent, to which a new job's spans belong; an empty ID if the caller
    // sent none.
    wan::v1::TraceContext trace = {};
    // Runs the steps that decode images (server/jobs/image_check.h); null: they run on the calling
    // thread.
    PostStep decode = nullptr;
  };
  using CreateDone = std::function<void(absl::StatusOr<Created>)>;

  // Accepts a job, or returns the job that an earlier call of the same owner with the same
  // request_id and the same request created. If `done` receives OK, the job is on disk. The job is
  // planned on the caller's thread, or in `post` if another call with the same request_id has to
  // end first. The image is decoded before the job is accepted.
  //
  // Errors: INVALID_ARGUMENT with every violation at once; ALREADY_EXISTS (REQUEST_ID_REUSED);
  // FAILED_PRECONDITION (MODEL_NOT_READY); UNAVAILABLE (MODEL_LOADING, SERVER_DRAINING,
  // SERVER_STOPPING, STORAGE_UNAVAILABLE) and RESOURCE_EXHAUSTED (QUEUE_FULL,
  // DISK_RESERVE) with a retry delay;
  // RESOURCE_EXHAUSTED (QUOTA_EXCEEDED), with a retry delay if waiting alone helps.
  void Create(std::shared_ptr<const wan::v1::GenerationRequest> asked, CallerFacts caller,
              const PostTask& post, CreateDone done);

  using BatchDone = std::function<void(absl::StatusOr<wan::v1::SubmitBatchResponse>)>;
  // Accepts up to 100 jobs, none of them tied to its caller, or none at all if one is refused.
  // Errors as of Create, with the violations of all requests at once. The returned jobs have no
  // `request`.
  void SubmitBatch(std::shared_ptr<const wan::v1::SubmitBatchRequest> asked, CallerFacts caller,
                   const PostTask& post, BatchDone done);

  // Plans a request without creating a job. Returns the errors of Create that concern the request
  // and its model; does not decode the image.
  absl::StatusOr<wan::v1::QuoteResponse> Quote(const wan::v1::QuoteRequest& quote,
                                               const std::string& owner = {}) const;

  // Changes the fields in the request's update mask, and returns the job once the change is on
  // disk. FAILED_PRECONDITION (JOB_ENDED) for the priority or deadline of a job that has ended.
  // UNAVAILABLE (STORAGE_UNAVAILABLE) if the disk refuses the change; it is then made later if the
  // job has not ended, once the disk takes writes.
  void Update(const wan::v1::UpdateJobRequest& request, const PostTask& post, JobDone done);

  // Removes an ended job and its files. FAILED_PRECONDITION (JOB_NOT_ENDED).
  void Delete(std::string_view name, const PostTask& post, Done done);

  // Removes a file of an ended job, and marks it as removed in the job. NOT_FOUND (EXPIRED) if the
  // file was removed before.
  void DeleteArtifact(std::string_view name, const PostTask& post, Done done);

  absl::StatusOr<wan::v1::Job> Get(std::string_view name) const;

  // Returns who owns the job, or owned it before it was removed. NOT_FOUND also if the owner is no
  // longer known. The violation of an INVALID_ARGUMENT names `field`.
  absl::StatusOr<std::string> OwnerOf(std::string_view name, std::string_view field) const;

  // Begins to list the jobs of `owner`, or of all owners; call Step until the list is complete.
  // INVALID_ARGUMENT if the page size, a state or the token is wrong. A token is valid only with
  // the states, filter and order of the request that returned it.
  absl::StatusOr<std::unique_ptr<JobListing>> BeginList(
      const wan::v1::ListJobsRequest& request,
      const std::optional<std::string>& owner = std::nullopt) const;

  // Ends a queued job at once. Asks a running job to stop, which takes at most 0.5 s on a GPU; the
  // returned job may still be RUNNING. Does nothing to an ended job. The job's Cancelled event
  // carries `reason`. After OK the job becomes CANCELLED even if the process dies before the job
  // has stopped. UNAVAILABLE (STORAGE_UNAVAILABLE) if the disk refuses the change: the job stops
  // anyway, and becomes CANCELLED when the disk takes writes again, unless the process dies before.
  void Cancel(std::string_view name, std::string_view reason, JobDone done);

  // Call it when a caller who holds the job has gone before the job's end. When the last one has
  // gone, the job is cancelled at once if it has no request_id, if there is no grace time, or if
  // the caller left because its deadline passed. Otherwise the job continues, and is cancelled
  // after the grace time unless a call with the same request joins it before.
  void CallerWentAway(const std::string& name, bool deadline_passed);
  // Call it when a caller who holds the job has followed it to the job's end or to the server's
  // stop.
  void CallerDone(const std::string& name);

  // See EventLog::Watch. INVALID_ARGUMENT if `after_sequence` is negative.
  absl::StatusOr<std::unique_ptr<EventCursor>> Watch(std::string_view name, int64_t after_sequence,
                                                     std::function<void()> notify);

  // Returns the report of the latest attempt; if it runs, the report up to now. NOT_FOUND
  // (REPORT_NOT_FOUND) if no attempt has ended and none runs.
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view name) const;

  // Returns the inputs from which the job's video was made.
  absl::StatusOr<wan::v1::Receipt> Receipt(std::string_view name) const;

  struct OpenedArtifact {
    wan::v1::Artifact artifact;
    ArtifactReader reader;
  };
  // Opens an artifact at a byte offset. NOT_FOUND (ARTIFACT_NOT_FOUND) if the job has no such
  // artifact; OUT_OF_RANGE if `offset` is past its end.
  absl::StatusOr<OpenedArtifact> OpenArtifact(std::string_view name, uint64_t offset) const;

  // Returns the queue of webhook reports that wait for delivery; it lives as long as the service.
  WebhookOutbox& webhooks();

  JobStats Stats() const;
  // Asks the store and the file system.
  StorageStats StorageNow() const;
  // Returns an error if a running job is stuck: see ProgressWatch::Check.
  absl::Status CheckProgress() const;
  // Returns the principal's use and quota. The empty principal stands for all callers of a server
  // that does not authenticate them. An unknown principal has used nothing.
  absl::StatusOr<wan::v1::Usage> UsageOf(const std::string& principal) const;
  // Replaces both settings of JobServiceOptions and begins a retention run at once.
  void SetLimits(const RetentionPolicy& retention, uint64_t disk_reserve_bytes);
  // Call it after quotas have changed: begins jobs that they no longer hold back.
  void QuotasChanged();
  ModelTable& models();
  ModelOperations& model_operations();

  // Refuses new jobs, begins none, cancels model tasks and ends the running jobs as `mode` says,
  // after `timeout` at the latest. All other calls work until Stop. Returns without waiting; `done`
  // is called when no job runs, on the calling thread or another one. Later calls wait for the same
  // end; their mode and timeout have no effect. ABORTED (DRAIN_TAKEN_BACK) if Undrain comes before
  // the end.
  void Drain(StopMode mode, absl::Duration timeout,
             std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)> done);

  // Reverts a drain (Drainer::Undrain); jobs begin again. Returns without waiting; `done` is called
  // on the calling thread or another one.
  void Undrain(std::function<void(const absl::StatusOr<wan::v1::UndrainResponse>&)> done);

  // Waits until the disk has written or refused every change made so far.
  void AwaitWrites();

  // Refuses new jobs, ends the running jobs as `mode` says, cancels model tasks, writes everything
  // to disk and ends all cursors with UNAVAILABLE. Blocks until this is done. Reads still work
  // afterwards. Idempotent.
  void Stop(StopMode mode, absl::Duration grace);

 private:
  struct Parts;
  explicit JobService(std::unique_ptr<Parts> parts);

  struct Asked;
  struct Batch;

  void UpdateEnded(const std::shared_ptr<const JobUpdate>& update, const PostTask& post,
                   JobDone done);
  // Returns the answer if the request_id already has a job; nothing if it has none. The calling
  // code must hold the turn of the request_id.
  std::optional<absl::StatusOr<Created>> JoinExisting(const Asked& asked) const;
  void CreateNew(const Asked& asked, CreateDone done);
  // Returns what Get returns, for a row that has just been read.
  absl::StatusOr<wan::v1::Job> NowOf(StoredJob stored) const;
  // Returns the owner's job with the request's request_id; nothing if there is none. The calling
  // code must hold the turn of the request_id.
  absl::StatusOr<std::optional<StoredJob>> FindExisting(const wan::v1::GenerationRequest& request,
                                                        const std::string& digest,
                                                        const std::string& owner) const;
  // Makes the checks that need no plan, and fills in `digests` and `ids`.
  static absl::Status CheckBatch(Batch& batch);
  // Finds the jobs that exist already, and prepares the others.
  absl::StatusOr<std::vector<NewJob>> PrepareBatch(Batch& batch);
  static absl::Status RefusalOf(const Batch& batch, const CheckedJobs& checked);
  void AcceptBatch(const std::shared_ptr<Batch>& batch, BatchDone done);
  // Decodes the images of planned jobs, each in a step of `caller.decode`. If any image is refused
  // or not checked, all the jobs are released from their models (ModelTable::RemoveJob).
  void CheckImagesOf(std::vector<NewJob> jobs, const CallerFacts& caller,
                     std::function<void(CheckedJobs)> done);
  struct Planned {
    GenerationPlan plan;
    std::shared_ptr<const std::string> image;  // null: text to video
  };
  // Checks and plans a request that has passed ValidateSizes. On OK the model counts one more job
  // (ModelTable::AddJob), and the calling code must call RemoveJob.
  absl::StatusOr<Planned> PlanInUse(const wan::v1::GenerationRequest& request) const;
  // Checks and plans a request. On OK the model counts one more job, as in PlanInUse; Accept
  // removes it again if it fails.
  absl::StatusOr<NewJob> Prepare(const wan::v1::GenerationRequest& request,
                                 const std::string& digest, const std::string& owner,
                                 const wan::v1::TraceContext& trace);
  void Accept(std::vector<NewJob> jobs,
              std::function<void(absl::StatusOr<std::vector<wan::v1::Job>>)> done);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace wan::server
