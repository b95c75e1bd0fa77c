// Implements the service VideoGeneration without gRPC: with the contract's messages and
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
#include "server/conversion/job_inputs.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_listing.h"
#include "server/jobs/job_stats.h"
#include "server/jobs/lora_folders.h"
#include "server/jobs/model_operations.h"
#include "server/jobs/model_table.h"
#include "server/jobs/request_latents.h"
#include "server/jobs/stop_mode.h"
#include "server/jobs/turns.h"
#include "server/objects/object_store.h"
#include "server/quota/quotas.h"
#include "server/retention/retention_policy.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"
#include "server/watch/live_video.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

struct CheckedJobs;
struct JobUpdate;
struct NewJob;

// Opens a job database; damaged rows are reported to `on_problem`.
using StoreOpener = std::function<absl::StatusOr<std::unique_ptr<JobStore>>(
    std::function<void(const absl::Status&)> on_problem)>;

struct JobServiceOptions {
  // The folder of jobs.db (unless `open_store` is set), artifacts/, savepoints/ and staging/;
  // created if missing. Only one server at a time can use the folder.
  std::filesystem::path data_dir;
  // Maximum number of jobs that wait in the queue.
  int queue_capacity = 100;
  // A job ends as FAILED after this many attempts were lost with the process or the device.
  int max_attempts = 3;
  // How long a job goes on after its last caller has gone, if the job is tied to its caller and has
  // a request_id.
  absl::Duration caller_grace = absl::Seconds(30);
  // Least time between two savepoints of a job; zero: the job keeps a savepoint after every step.
  absl::Duration savepoint_interval = absl::Seconds(30);
  // At the end of a step, a waiting job preempts a running one if its priority is higher by this
  // much or more; 0: never.
  int preempt_priority_gap = 0;
  // Decides which ended jobs and files are removed; by default none are.
  RetentionPolicy retention;
  // The service refuses a new job if fewer free bytes than this would remain after all accepted
  // jobs have written their files.
  uint64_t disk_reserve_bytes = 0;
  // Returns the free bytes of the disk of `data_dir`; nothing if the number is unknown. If the
  // function is null, the service asks the file system. The service calls the function on any
  // thread.
  std::function<std::optional<uint64_t>()> free_bytes;
  // Opens the job database; null: the SQLite file in `data_dir`.
  StoreOpener open_store;
  // Makes writes to the SQLite file durable; null: fdatasync does.
  std::function<absl::Status()> sync_database;
  // Whether loading a model includes a warm-up, and the shapes of the warm-up; no shapes: one small
  // video.
  bool warm_up_on_load = true;
  std::vector<VideoShape> warm_up_shapes;
  // These functions make additional telemetry sinks for every job and every load of a model.
  std::vector<SinkFactory> sinks;
  // The devices of each group as the settings write them, "cuda:0,1", for logs, reports and
  // metrics; empty: the names that the engines give.
  std::vector<std::string> device_names;
  // Says whether a device group may have a model; null: every group may have every model.
  DeviceGroups::MayHaveModel may_have;
  // The folders below which the models must lie that callers load.
  ModelRoots model_roots;
  // The folders of LoRAs for all models that are loaded.
  LoraFolders lora_folders;
  // Returns what is wrong with a request's webhook_url; empty if it is valid.
  std::function<std::string(std::string_view url)> webhook_problem = [](std::string_view) {
    return std::string("must be empty, because this server sends no webhooks");
  };
  // Makes a new trace for a job whose caller sent none. Null: jobs whose callers sent no trace have
  // none.
  std::function<wan::v1::TraceContext()> new_trace;
  // The version that each job records in its provenance.
  std::string server_version;
  // The commit from which the server was built, for reports; empty if unknown.
  std::string server_revision;
  // All listeners must outlive the service.
  std::vector<StateListener*> listeners;
  // Where files and savepoints of jobs are kept in addition to `data_dir`; null: nowhere else. Must
  // outlive the service.
  ObjectStore* objects = nullptr;
  // Must outlive the service. Call JobService::QuotasChanged after the quotas have changed.
  const Quotas* quotas = nullptr;  // null: nothing is limited
};

// Thread-safe. A call that changes something is answered once the disk has the change. Calls with a
// `done` do not block until then: `done` is called once, on the caller's thread or on one of the
// service's threads, and must not block. Functions with a `post` parameter post the steps after a
// wait, which may block. Reads never wait for a change to reach the disk. Only Stop waits for jobs.
//
// A name that does not have the contract's form fails with INVALID_ARGUMENT and a violation of the
// field `name` (`job` for Report and Receipt); an unknown name fails with NOT_FOUND. Violations
// name the fields of a generation request relative to it: "width", not "request.width".
class JobService {
 public:
  // Opens the data folder, takes over what an earlier process left, and begins to run jobs as their
  // models become ready. Queued jobs stay queued, running jobs are queued again with a Requeued
  // event, jobs that were tied to a caller are cancelled, and half-written artifacts are removed.
  // `engines` has the engine of each device group, by its number; engines and clock must outlive
  // the service.
  //
  // Fails like OpenSqliteJobStore or `open_store`, but not if the folder is full, read-only or
  // missing. If the folder is full, read-only or missing, the service answers reads as far as
  // possible, refuses new jobs and lets queued jobs wait, until the folder takes writes again.
  static absl::StatusOr<std::unique_ptr<JobService>> Open(const JobServiceOptions& options,
                                                          const std::vector<Engine*>& engines,
                                                          Clock& clock);
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;
  // Calls Stop(kRequeue) first. All cursors must have been destroyed, and every `done` must have
  // been called.
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
    // Whether the job is cancelled when all its callers have gone; calls with one request_id share
    // a job.
    bool tied = false;
    std::string owner =
        {};  // the caller's principal; empty on a server that does not authenticate its callers
    // The trace that the caller sent, to which the spans of a new job belong; its ID is empty if
    // the caller sent none.
    wan::v1::TraceContext trace = {};
    // Runs the steps that decode images (server/jobs/image_check.h); null: the steps run on the
    // calling thread.
    PostStep decode = nullptr;
    // Whether the caller may use the latents of all owners' jobs in requests, or only those of the
    // caller's own jobs.
    bool reads_all = false;
  };
  using CreateDone = std::function<void(absl::StatusOr<Created>)>;

  // Accepts a job, or returns the job that an earlier call of the same owner with the same
  // request_id and the same request created. When `done` receives OK, the job is on disk. Plans the
  // job on the caller's thread, or in `post` if another call with the same request_id must end
  // first. Decodes the image before the job is accepted.
  //
  // Errors: INVALID_ARGUMENT with every violation at once; ALREADY_EXISTS (REQUEST_ID_REUSED);
  // FAILED_PRECONDITION (MODEL_NOT_READY); UNAVAILABLE (MODEL_LOADING, SERVER_DRAINING,
  // SERVER_STOPPING, STORAGE_UNAVAILABLE) and RESOURCE_EXHAUSTED (QUEUE_FULL,
  // DISK_RESERVE) with a retry delay;
  // RESOURCE_EXHAUSTED (QUOTA_EXCEEDED), with a retry delay if waiting alone helps.
  void Create(std::shared_ptr<const wan::v1::GenerationRequest> asked, CallerFacts caller,
              const PostTask& post, CreateDone done);

  using BatchDone = std::function<void(absl::StatusOr<wan::v1::SubmitBatchResponse>)>;
  // Accepts up to 100 jobs, or none at all if one of them is refused; none of them is tied to its
  // caller. Errors are those of Create, with the violations of all requests at once. The returned
  // jobs lack the field `request`.
  void SubmitBatch(std::shared_ptr<const wan::v1::SubmitBatchRequest> asked, CallerFacts caller,
                   const PostTask& post, BatchDone done);

  // Plans a request without creating a job. Returns those errors of Create that concern the request
  // and its model; does not decode the image.
  absl::StatusOr<wan::v1::QuoteResponse> Quote(const wan::v1::QuoteRequest& quote,
                                               const JobReader& caller = {}) const;

  // Changes the fields in the request's update mask, and returns the job once the change is on
  // disk. Fails with FAILED_PRECONDITION (JOB_ENDED) for the priority or deadline of a job that has
  // ended. Fails with UNAVAILABLE (STORAGE_UNAVAILABLE) if the disk refuses the change; if the job
  // has not ended, the change is made later, when the disk takes writes again.
  void Update(const wan::v1::UpdateJobRequest& request, const PostTask& post, JobDone done);

  // Removes an ended job and its files. Fails with FAILED_PRECONDITION (JOB_NOT_ENDED) if the job
  // has not ended.
  void Delete(std::string_view name, const PostTask& post, Done done);

  // Removes a file of an ended job, and marks the file as removed in the job's row. Fails with
  // NOT_FOUND (EXPIRED) if the file was removed before.
  void DeleteArtifact(std::string_view name, const PostTask& post, Done done);

  absl::StatusOr<wan::v1::Job> Get(std::string_view name) const;

  // Returns who owns the job, or owned it before it was removed. Fails with NOT_FOUND if there was
  // no such job or its owner is no longer known. The violation of an INVALID_ARGUMENT error names
  // `field`.
  absl::StatusOr<std::string> OwnerOf(std::string_view name, std::string_view field) const;

  // Begins to list the jobs of `owner`, or of all owners; call JobListing::Step until the list is
  // complete. Fails with INVALID_ARGUMENT if the page size, a state or the token is wrong. A page
  // token is valid only with the states, filter and order of the request whose answer had it.
  absl::StatusOr<std::unique_ptr<JobListing>> BeginList(
      const wan::v1::ListJobsRequest& request,
      const std::optional<std::string>& owner = std::nullopt) const;

  // Ends a queued job at once. Asks a running job to stop, which takes at most 0.5 s on a GPU; the
  // returned job may still be RUNNING. Does nothing to an ended job. The job's Cancelled event
  // carries `reason`. When `done` receives OK, the job becomes CANCELLED even if the process dies
  // before the job has stopped. Fails with UNAVAILABLE (STORAGE_UNAVAILABLE) if the disk refuses
  // the change: the job stops anyway, and becomes CANCELLED when the disk takes writes again,
  // unless the process dies before.
  void Cancel(std::string_view name, std::string_view reason, JobDone done);

  // Call CallerWentAway when a caller whose `holds` is true has gone before the job's end. When the
  // last such caller has gone, the job is cancelled at once if it has no request_id, if there is no
  // grace time, or if the caller left because its deadline passed. Otherwise the job continues; it
  // is cancelled after the grace time unless a call with the same request_id joins it before.
  void CallerWentAway(const std::string& name, bool deadline_passed);
  // Call CallerDone when a caller whose `holds` is true has followed the job to its end or to the
  // server's stop.
  void CallerDone(const std::string& name);

  // Begins to follow a job's events, as EventLog::Watch does. Fails with INVALID_ARGUMENT if
  // `after_sequence` is negative.
  absl::StatusOr<std::unique_ptr<EventCursor>> Watch(std::string_view name, int64_t after_sequence,
                                                     std::function<void()> notify);

  // Returns the report of the latest attempt; if the attempt is running, the report up to now.
  // Fails with NOT_FOUND (REPORT_NOT_FOUND) if no attempt has ended and none runs.
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view name) const;

  // Returns the inputs from which the job's video was made.
  absl::StatusOr<wan::v1::Receipt> Receipt(std::string_view name) const;

  struct OpenedArtifact {
    wan::v1::Artifact artifact;
    ArtifactReader reader;
  };
  // Opens an artifact at a byte offset. Fails with NOT_FOUND (ARTIFACT_NOT_FOUND) if the job has no
  // such artifact; OUT_OF_RANGE if `offset` is past its end.
  absl::StatusOr<OpenedArtifact> OpenArtifact(std::string_view name, uint64_t offset) const;

  // Begins to read the video of a job while it is made. For a job that has ended, the reader only
  // reports that the job has no stream (any more). Fails with FAILED_PRECONDITION (NOT_PROGRESSIVE)
  // if the request was not progressive and the job has not ended.
  absl::StatusOr<std::unique_ptr<LiveVideoReader>> WatchVideo(std::string_view name);

  // Returns the queue of webhook reports that wait for delivery; it lives as long as the service.
  WebhookOutbox& webhooks();

  JobStats Stats() const;
  // Returns figures that need queries of the store and the file system.
  StorageStats StorageNow() const;
  // Returns an error if a running job is stuck, as ProgressWatch::Check says.
  absl::Status CheckProgress() const;
  // Returns the principal's use and quota. The empty principal stands for all callers of a server
  // that does not authenticate them. A principal that the server has never seen has used nothing.
  absl::StatusOr<wan::v1::Usage> UsageOf(const std::string& principal) const;
  // Replaces `retention` and `disk_reserve_bytes` of JobServiceOptions, and begins a retention run
  // at once.
  void SetLimits(const RetentionPolicy& retention, uint64_t disk_reserve_bytes);
  // Call QuotasChanged after quotas have changed, so that jobs begin that the quotas no longer hold
  // back.
  void QuotasChanged();
  ModelTable& models();
  ModelOperations& model_operations();

  // Refuses new jobs, begins no queued ones, cancels model tasks and ends the running jobs as
  // `mode` says, after `timeout` at the latest. All other calls work until Stop. Returns without
  // waiting; `done` is called when no job runs, on the calling thread or another one. A second call
  // during a drain waits for that drain's end; its mode and timeout have no effect. Fails with
  // ABORTED (DRAIN_TAKEN_BACK) if Undrain comes before the end.
  void Drain(StopMode mode, absl::Duration timeout,
             std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)> done);

  // Reverts a drain (Drainer::Undrain); jobs begin again. Returns without waiting; `done` is called
  // on the calling thread or another one.
  void Undrain(std::function<void(const absl::StatusOr<wan::v1::UndrainResponse>&)> done);

  // Waits until the disk has written or refused every change made so far.
  void AwaitWrites();

  // Refuses new jobs, ends the running jobs as `mode` says, cancels model tasks, writes everything
  // to disk and ends all cursors with UNAVAILABLE. Blocks until all of this is done. Reads still
  // work after Stop. Later calls do nothing.
  void Stop(StopMode mode, absl::Duration grace);

 private:
  struct Parts;
  explicit JobService(std::unique_ptr<Parts> parts);

  struct Asked;
  struct Batch;

  void UpdateEnded(const std::shared_ptr<const JobUpdate>& update, const PostTask& post,
                   JobDone done);
  // Returns the answer if the request_id already has a job; nothing if it has none. The calling
  // code must hold the turn of the request_id (server/jobs/turns.h).
  std::optional<absl::StatusOr<Created>> JoinExisting(const Asked& asked) const;
  void CreateNew(const Asked& asked, CreateDone done);
  // Does the work of Get for a row that the calling code has just read.
  absl::StatusOr<wan::v1::Job> NowOf(StoredJob stored) const;
  // Returns the owner's job with the request's request_id; nothing if there is none. The calling
  // code must hold the turn of the request_id (server/jobs/turns.h).
  absl::StatusOr<std::optional<StoredJob>> FindExisting(const wan::v1::GenerationRequest& request,
                                                        const std::string& digest,
                                                        const std::string& owner) const;
  // Makes the checks of a batch that need no plan, and fills in its `digests` and `ids`.
  static absl::Status CheckBatch(Batch& batch);
  // Finds the requests that already have jobs; fills in `places` for the other requests.
  absl::Status FindExistingOf(Batch& batch) const;
  // Finds the latents that new jobs of the batch name, and makes room for all of them.
  absl::Status HoldLatentsOf(Batch& batch) const;
  // Prepares the new jobs.
  absl::StatusOr<std::vector<NewJob>> PrepareBatch(Batch& batch);
  static absl::Status RefusalOf(const Batch& batch, const CheckedJobs& checked);
  void AcceptBatch(const std::shared_ptr<Batch>& batch, BatchDone done);
  // Decodes the images of planned jobs, each in a step of `caller.decode`. If an image is refused
  // or not checked, releases all the jobs from their models (ModelTable::RemoveJob).
  void CheckImagesOf(std::vector<NewJob> jobs, const CallerFacts& caller,
                     std::function<void(CheckedJobs)> done);
  struct Planned {
    GenerationPlan plan;
    JobInputs inputs;
  };
  // The latents that a request names, found but not read, and room to hold them.
  struct HeldLatents {
    NamedLatents named;
    RequestLatents::Lease lease;
  };
  // Returns OK if the owner may have this many more jobs now, without checking how much device time
  // and disk the jobs need.
  absl::Status CheckRoom(const std::string& owner, int jobs) const;
  // Checks and plans a request that has passed ValidateSizes. If it returns OK, the model counts
  // one more job (ModelTable::AddJob), and the calling code must call RemoveJob. `held` has the
  // latents of a request of a batch; null: the function finds them. Reads latents last, so that
  // they are not read for a request that is refused for another reason.
  absl::StatusOr<Planned> PlanInUse(const wan::v1::GenerationRequest& request,
                                    const JobReader& caller, const HeldLatents* held) const;
  // Checks and plans a request. If Prepare returns OK, the model counts one more job, as in
  // PlanInUse; if Accept fails later, it removes the job from the count.
  absl::StatusOr<NewJob> Prepare(const wan::v1::GenerationRequest& request,
                                 const std::string& digest, const CallerFacts& caller,
                                 const HeldLatents* held);
  void Accept(std::vector<NewJob> jobs,
              std::function<void(absl::StatusOr<std::vector<wan::v1::Job>>)> done);
  const std::unique_ptr<Parts> parts_;
  const RequestLatents latents_;
};

}  // namespace wan::server
