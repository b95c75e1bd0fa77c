// The parts of JobService, and how they use each other. Only the sources of JobService include this
// file.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/conversion/errors.h"
#include "server/jobs/callers.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/drainer.h"
#include "server/jobs/ended_jobs.h"
#include "server/jobs/job_ledger.h"
#include "server/jobs/job_order.h"
#include "server/jobs/job_outlook.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/job_service.h"
#include "server/jobs/job_states.h"
#include "server/jobs/live_jobs.h"
#include "server/jobs/model_operations.h"
#include "server/jobs/model_table.h"
#include "server/jobs/progress_watch.h"
#include "server/jobs/queue_estimates.h"
#include "server/jobs/storage_watch.h"
#include "server/jobs/time_estimator.h"
#include "server/jobs/turns.h"
#include "server/quota/quotas.h"
#include "server/retention/disk_reserve.h"
#include "server/retention/retention.h"
#include "server/store/artifact_store.h"
#include "server/store/ballast.h"
#include "server/store/file_digests.h"
#include "server/store/input_links.h"
#include "server/store/job_objects.h"
#include "server/store/reopening_job_store.h"
#include "server/store/savepoint_store.h"
#include "server/watch/event_log.h"
#include "server/watch/live_video.h"

namespace wan::server {

// The reason that the Cancelled event gives when a job's last caller has gone.
inline constexpr char kCallerWentAway[] = "caller went away";

// Members are in the order of construction; each may use those above it.
struct JobService::Parts {
  Parts(const JobServiceOptions& options, const std::vector<Engine*>& engines, Clock& clock_in);
  // Destroys the log before the states, because the log's last writes call functions of the states.
  ~Parts();

  // Takes a group out of service after its device was lost. Called on the thread of the group's
  // executor, which then begins no other work. The other groups keep serving.
  void LoseGroup(int group, DeviceLoss cause, const absl::Status& problem);

  // Computes a few results on the device and compares them with recorded ones. The check is the
  // first task of each executor, so that no model is loaded on a device that computes wrongly.
  void CheckDevice(int group, const std::filesystem::path& data_dir);

  // Makes `objects` of the store; returns null if there is none.
  JobObjects* KeepObjects(ObjectStore* store_of_objects);

  // Runs the group's next job; returns false if the group can run no job now.
  bool RunNext(int group);

  // Opens the store with `open`, or, if it is null, the SQLite file in the folder.
  absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(const std::filesystem::path& folder,
                                                      const StoreOpener& open,
                                                      const std::function<absl::Status()>& sync);

  // Takes over the jobs and files that an earlier process left. The store must be open.
  absl::Status Recover() ABSL_EXCLUSIVE_LOCKS_REQUIRED(probe_mutex);
  // Removes files that no longer belong to a job, until `stop` is requested. The function looks at
  // every job that has files, so it runs on the thread `sweep`.
  void RemoveLeftovers(const std::stop_token& stop);
  StorageStats StorageNow();
  // Returns OK if a job could write its row, events and artifacts now.
  absl::Status ProbeStorage();
  // Waits until no job is being accepted, because the callbacks of accepting jobs use the parts.
  void AwaitAccepted();
  // If the store is not open for writing, opens the store for writing and takes over the jobs and
  // files that an earlier process left.
  absl::Status OpenForWriting() ABSL_LOCKS_EXCLUDED(probe_mutex);
  // Frees the disk space that is reserved for removals. Returns whether some space was freed and
  // the store can now be written.
  bool MakeRoom();

  void Tell(const absl::Status& problem) {
    for (StateListener* listener : listeners) listener->OnProblem(problem);
  }
  // Call TellIfRejected with the status of a call that asked for `jobs` jobs; tells the listeners
  // of an error.
  void TellIfRejected(const absl::Status& status, int jobs) {
    if (status.ok()) return;
    for (StateListener* listener : listeners) listener->OnJobsRejected(status, jobs);
  }
  void ReportIfStorage(const absl::Status& problem) {
    if (ReasonOf(problem) == kReasonStorageUnavailable) storage.Report(problem);
  }

  // Lets calls with one request_id (TurnKeyOf) run one at a time, and also the changes to one ended
  // job. Destroyed after the store, because a change that the store drops may hold the last turn.
  Turns turns;
  DiskReserve disk;
  QueueEstimates queue_estimates;  // destroyed late: the models and the log call it even during
                                   // their destruction
  const std::vector<StateListener*> listeners;
  const std::function<std::string(std::string_view)> webhook_problem;
  const std::function<wan::v1::TraceContext()> new_trace;
  Clock& clock;
  const Quotas& quotas;
  ReopeningJobStore store;
  const std::filesystem::path database;
  const Ballast ballast;
  std::optional<JobObjects> objects;  // unset: there is no object store
  const ArtifactStore artifacts;
  const SavepointStore savepoints;
  const InputLinks input_links;
  // Whether jobs may use the links. A database outside the folder must keep the inputs itself,
  // because it must be able to run its jobs after the folder is lost.
  const bool links_inputs;
  LiveVideos live_videos;
  FileDigests digests;
  StorageWatch storage;
  std::unique_ptr<EventLog> log;
  TimeEstimator estimator;
  ProgressWatch progress;
  DeadlineTimer timer;
  DeviceGroups groups;
  absl::Mutex canary_mutex;  // guards the file with the canaries' results
  ModelTable models;
  ModelOperations model_operations;
  LiveJobs live;
  JobLedger ledger;
  ReceiptFiles receipt_files;
  JobOutlook outlook;
  JobOrder order;
  JobStates states;
  std::deque<JobRunner> runners;  // the index is the group's number
  EndedJobs ended_jobs;
  Retention retention;
  Callers callers;
  Drainer drainer;
  absl::Mutex accepting_mutex;
  // Number of jobs and batches that are being accepted.
  int accepting ABSL_GUARDED_BY(accepting_mutex) = 0;
  absl::Mutex probe_mutex;
  bool recovered ABSL_GUARDED_BY(probe_mutex) = false;
  absl::Mutex stop_mutex;
  bool stopped ABSL_GUARDED_BY(stop_mutex) = false;
  // Declared last: the thread uses the members above.
  std::jthread sweep ABSL_GUARDED_BY(probe_mutex);
};

}  // namespace wan::server
