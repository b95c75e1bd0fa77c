// The work of the service VideoGeneration without gRPC: it uses the contract's messages and
// absl::Status. The gRPC services are thin shells around this class.
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
  // The folder of jobs.db, artifacts/, savepoints/ and staging/. It is made if it is missing. Only
  // one server at a time can use it.
  std::filesystem::path data_dir;
  // Most jobs that may wait.
  int queue_capacity = 100;
  // How many attempts a job may lose with the process or the device before it ends as FAILED.
  int max_attempts = 3;
  // How long a job that is tied to its caller, and has a request_id, goes on without a caller.
  absl::Duration caller_grace = absl::Seconds(30);
  // The least time between two savepoints of a job, from which it goes on after a restart; zero:
  // one after every step.
  absl::Duration savepoint_interval = absl::Seconds(30);
  // By how much the priority of a job must be higher than the running one's, so that it takes over
  // at the end of a step; 0: none does.
  int preempt_priority_gap = 0;
  // Which ended jobs and files are removed; by default none.
  RetentionPolicy retention;
  // Bytes that new jobs leave free in addition to the needs of accepted ones.
  uint64_t disk_reserve_bytes = 0;
  // Returns the free bytes of the disk of `data_dir`, or nothing if they are not known. Null: those
  // that the file system tells. Called on any thread.
  std::function<std::optional<uint64_t>()> free_bytes;
  // Makes writes to the job database durable; null: fdatasync.
  std::function<absl::Status()> sync_database;
  // Whether loading a model includes a warm-up, and with which shapes (empty: one small video).
  bool warm_up_on_load = true;
  std::vector<VideoShape> warm_up_shapes;
  // Receive the telemetry of every job and model task, besides events and report.
  std::vector<SinkFactory> sinks;
  // The devices of each group as the settings write them, "cuda:0,1", for logs, reports and
  // metrics; empty: what the engines say.
  std::vector<std::string> device_names;
  // Whether a device group may have a model; null: every group may have every model.
  DeviceGroups::MayHaveModel may_have;
  // The folders of models that callers may load.
  ModelRoots model_roots;
  // Returns what is wrong with a request's webhook_url; empty if nothing.
  std::function<std::string(std::string_view url)> webhook_problem = [](std::string_view) {
    return std::string("must be empty, because this server sends no webhooks");
  };
  // Returns the trace of a job whose caller sent none. Null: such a job has none.
  std::function<wan::v1::TraceContext()> new_trace;
  // The version that each job records in its provenance.
  std::string server_version;
  // The commit from which it was built, for reports; empty if that is unknown.
  std::string server_revision;
  // They must outlive the service.
  std::vector<StateListener*> listeners;
  // Must outlive the service. Call QuotasChanged when they may be others than before.
  const Quotas* quotas = nullptr;  // null: nothing is limited
};

// Thread-safe. Changes are answered once the disk has them. The calls that take a `done` hold no
// thread until then: `done` is called once, on the caller's thread or on one of the service's,
// which it must not block. They take a `post` where they have work that takes a moment after a
// wait. Reads never wait for a change to reach the disk: they return what was stored last. Stop
// alone waits for a job.
//
// A name that does not have the contract's form is INVALID_ARGUMENT with a violation of the field
// `name` (`job` for Report and Receipt); an unknown name is NOT_FOUND. Violations of a generation
// request are relative to that request: "width", not "request.width".
class JobService {
 public:
  // Opens the data folder, takes over what an earlier process left, and begins to run jobs as their
  // models become ready. Queued jobs stay queued, running jobs are queued again with a Requeued
  // event, jobs that were tied to a caller are cancelled, and half-written artifacts are removed.
  // The engine and the clock must outlive the service.
  //
  // Fails like OpenSqliteJobStore, with one exception: a folder that is full, read-only or gone is
  // not an error. The service then serves what it can read, refuses new jobs, lets queued jobs
  // wait, and goes on by itself when the folder takes writes again.
  static absl::StatusOr<std::unique_ptr<JobService>> Open(const JobServiceOptions& options,
                                                          Engine& engine, Clock& clock);
  // The same with the engine of each device group, by number.
  static absl::StatusOr<std::unique_ptr<JobService>> Open(const JobServiceOptions& options,
                                                          const std::vector<Engine*>& engines,
                                                          Clock& clock);
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;
  // Calls Stop(kRequeue). All cursors must have been destroyed, and calls with a `done` have ended.
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

  // Who asks for a job.
  struct CallerFacts {
    // Whether the job must not outlive its callers, of which it has several if they use one
    // request_id.
    bool tied = false;
    std::string owner = {};  // empty: nobody, on a server that does not authenticate its callers
    // The trace that the caller sent, to which a new job's spans belong; without an ID it sent
    // none.
    wan::v1::TraceContext trace = {};
    // Carries out the steps in which images are decoded (server/jobs/image_check.h); null: they are
    // carried out where they come up.
    PostStep decode = nullptr;
  };
  using CreateDone = std::function<void(absl::StatusOr<Created>)>;

  // Accepts a job, or returns the job that an earlier call of the same owner with the same
  // request_id and the same request created. When this ends with OK the job is on disk. The plan is
  // made on the caller's thread, or posted if another call with the same request_id has to end
  // first. Its image is decoded before the job is accepted.
  //
  // Errors: INVALID_ARGUMENT with every violation at once; ALREADY_EXISTS (REQUEST_ID_REUSED);
  // FAILED_PRECONDITION (MODEL_NOT_READY); UNAVAILABLE (MODEL_LOADING, SERVER_DRAINING,
  // SERVER_STOPPING, STORAGE_UNAVAILABLE) and RESOURCE_EXHAUSTED (QUEUE_FULL,
  // DISK_RESERVE) with a retry delay;
  // RESOURCE_EXHAUSTED (QUOTA_EXCEEDED), with a retry delay if waiting alone helps.
  void Create(std::shared_ptr<const wan::v1::GenerationRequest> asked, CallerFacts caller,
              const PostTask& post, CreateDone done);

  using BatchDone = std::function<void(absl::StatusOr<wan::v1::SubmitBatchResponse>)>;
  // Accepts up to 100 jobs that live on their own, or none of them if one is refused: errors as of
  // Create, the violations of all requests at once. The jobs have no `request`.
  void SubmitBatch(std::shared_ptr<const wan::v1::SubmitBatchRequest> asked, CallerFacts caller,
                   const PostTask& post, BatchDone done);

  // Plans a request and makes no job of it. Errors as of Create, as far as they are about the
  // request and its model; the pixels of an image are not looked at.
  absl::StatusOr<wan::v1::QuoteResponse> Quote(const wan::v1::QuoteRequest& quote,
                                               const std::string& owner = {}) const;

  // Changes what the request's update mask names, and returns the job once that is on disk.
  // FAILED_PRECONDITION (JOB_ENDED) for the priority or deadline of a job that has ended.
  // UNAVAILABLE (STORAGE_UNAVAILABLE) if the disk refuses it; a job that has not ended changes then
  // once the disk takes writes.
  void Update(const wan::v1::UpdateJobRequest& request, const PostTask& post, JobDone done);

  // Removes an ended job and all that belongs to it. FAILED_PRECONDITION (JOB_NOT_ENDED).
  void Delete(std::string_view name, const PostTask& post, Done done);

  // Removes a file of an ended job, and notes it in the job. NOT_FOUND (EXPIRED) if it was removed
  // before.
  void DeleteArtifact(std::string_view name, const PostTask& post, Done done);

  absl::StatusOr<wan::v1::Job> Get(std::string_view name) const;

  // Returns who owns the job, or owned it before it was removed. NOT_FOUND also if the owner is no
  // longer known. The violation of an INVALID_ARGUMENT names `field`.
  absl::StatusOr<std::string> OwnerOf(std::string_view name, std::string_view field) const;

  // Begins to list the jobs of `owner`, or everybody's; call Step until the list is complete.
  // INVALID_ARGUMENT if the page size, a state or the token is wrong. A token is valid only with
  // the states of the request that returned it.
  absl::StatusOr<std::unique_ptr<JobListing>> BeginList(
      const wan::v1::ListJobsRequest& request,
      const std::optional<std::string>& owner = std::nullopt) const;

  // Ends a queued job at once, and asks a running job to stop, which on a GPU takes at most 0.5 s:
  // the returned job is still RUNNING and becomes CANCELLED. A job that has ended stays as it is.
  // The job's Cancelled event carries `reason`. Once this has ended with OK the job is CANCELLED
  // whatever happens, also if the process dies before the job has stopped. UNAVAILABLE
  // (STORAGE_UNAVAILABLE) if the disk refuses that: the job stops all the same, and is CANCELLED
  // when the disk takes writes again, unless the process dies before.
  void Cancel(std::string_view name, std::string_view reason, JobDone done);

  // Call it when a caller who holds the job has gone before the job's end. When the last one has
  // gone, the job is cancelled at once if it has no request_id, if there is no grace time, or if
  // the caller left because its deadline passed. Otherwise it goes on, and is cancelled after the
  // grace time unless a caller with the same request joins it before.
  void CallerWentAway(const std::string& name, bool deadline_passed);
  // Call it when a caller who held the job has followed it to its end, or to the end of the server.
  void CallerDone(const std::string& name);

  // See EventLog::Watch. INVALID_ARGUMENT if `after_sequence` is negative.
  absl::StatusOr<std::unique_ptr<EventCursor>> Watch(std::string_view name, int64_t after_sequence,
                                                     std::function<void()> notify);

  // Returns the report of the latest attempt; if it runs, the report up to now. NOT_FOUND
  // (REPORT_NOT_FOUND) if no attempt has ended and none runs.
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view name) const;

  // Returns what the job's video was made from.
  absl::StatusOr<wan::v1::Receipt> Receipt(std::string_view name) const;

  struct OpenedArtifact {
    wan::v1::Artifact artifact;
    ArtifactReader reader;
  };
  // Opens an artifact at a byte offset. NOT_FOUND (ARTIFACT_NOT_FOUND) if the job has no such
  // artifact; OUT_OF_RANGE if `offset` is past its end.
  absl::StatusOr<OpenedArtifact> OpenArtifact(std::string_view name, uint64_t offset) const;

  // Returns the reports of ended jobs that wait for delivery; valid as long as the service.
  WebhookOutbox& webhooks();

  JobStats Stats() const;
  // Asks the store and the file system.
  StorageStats StorageNow() const;
  // Whether the running job goes on: see ProgressWatch::Check.
  absl::Status CheckProgress() const;
  // Returns the principal's use and quota; an empty principal is everybody, on a server that does
  // not authenticate its callers. A principal that has never used anything uses nothing.
  absl::StatusOr<wan::v1::Usage> UsageOf(const std::string& principal) const;
  // Replaces both settings of JobServiceOptions; a round of the retention begins at once.
  void SetLimits(const RetentionPolicy& retention, uint64_t disk_reserve_bytes);
  // Begins jobs that the quotas no longer hold back.
  void QuotasChanged();
  ModelTable& models();
  ModelOperations& model_operations();

  // Refuses new jobs, begins none, cancels model tasks and ends the running job as `mode` says, for
  // which it may go on for `timeout` at most. Everything else goes on, until Stop. Does not wait:
  // `done` is called when no job runs, on another thread or on this one. Later calls wait for the
  // same end; their mode and timeout have no effect. ABORTED (DRAIN_TAKEN_BACK) if Undrain comes
  // before the end.
  void Drain(StopMode mode, absl::Duration timeout,
             std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)> done);

  // Takes a drain back (Drainer::Undrain); jobs begin again. Does not wait: `done` is called on
  // another thread or on this one.
  void Undrain(std::function<void(const absl::StatusOr<wan::v1::UndrainResponse>&)> done);

  // Waits until everything that has happened so far is on the disk, or was refused by it.
  void AwaitWrites();

  // Refuses new jobs, ends the running job as `mode` says, cancels model tasks, writes everything
  // to disk and ends all cursors with UNAVAILABLE. Blocks until that is done. Reading still works
  // afterwards. Idempotent.
  void Stop(StopMode mode, absl::Duration grace);

 private:
  struct Parts;
  explicit JobService(std::unique_ptr<Parts> parts);

  struct Asked;
  struct Batch;

  void UpdateEnded(const std::shared_ptr<const JobUpdate>& update, const PostTask& post,
                   JobDone done);
  // The answer for a caller whose request_id has a job; nothing if it has none. The caller has the
  // turn of the request_id.
  std::optional<absl::StatusOr<Created>> JoinExisting(const Asked& asked) const;
  void CreateNew(const Asked& asked, CreateDone done);
  // The job as Get tells it, where its row has just been read.
  absl::StatusOr<wan::v1::Job> NowOf(StoredJob stored) const;
  // The owner's job of the request's request_id, whose turn the caller has; nothing if there is
  // none.
  absl::StatusOr<std::optional<StoredJob>> FindExisting(const wan::v1::GenerationRequest& request,
                                                        const std::string& digest,
                                                        const std::string& owner) const;
  // Checks what can be told without a plan, and fills in digests and ids.
  static absl::Status CheckBatch(Batch& batch);
  // Finds the jobs that exist, and prepares the others.
  absl::StatusOr<std::vector<NewJob>> PrepareBatch(Batch& batch);
  static absl::Status RefusalOf(const Batch& batch, const CheckedJobs& checked);
  void AcceptBatch(const std::shared_ptr<Batch>& batch, BatchDone done);
  // Decodes the images of jobs that were planned, each in a step of the caller's. Jobs of which one
  // was refused, or not checked, use their models no more.
  void CheckImagesOf(std::vector<NewJob> jobs, const CallerFacts& caller,
                     std::function<void(CheckedJobs)> done);
  struct Planned {
    GenerationPlan plan;
    std::shared_ptr<const std::string> image;  // null: text to video
  };
  // Checks and plans a request whose sizes are right. On OK the model counts a job more, and the
  // caller has it count one less.
  absl::StatusOr<Planned> PlanInUse(const wan::v1::GenerationRequest& request) const;
  // Checks and plans a request. The job's model is in use from then on, until Accept fails.
  absl::StatusOr<NewJob> Prepare(const wan::v1::GenerationRequest& request,
                                 const std::string& digest, const std::string& owner,
                                 const wan::v1::TraceContext& trace);
  void Accept(std::vector<NewJob> jobs,
              std::function<void(absl::StatusOr<std::vector<wan::v1::Job>>)> done);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace wan::server
