// The parts of JobService, and their wiring. Only the sources of JobService include it.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
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
#include "server/jobs/request_identity.h"
#include "server/jobs/storage_watch.h"
#include "server/jobs/time_estimator.h"
#include "server/jobs/turns.h"
#include "server/quota/quotas.h"
#include "server/retention/disk_reserve.h"
#include "server/retention/retention.h"
#include "server/store/artifact_store.h"
#include "server/store/ballast.h"
#include "server/store/file_digests.h"
#include "server/store/reopening_job_store.h"
#include "server/store/savepoint_store.h"
#include "server/watch/event_log.h"

namespace wan::server {

// The reason of a cancelled job whose last caller has gone.
inline constexpr char kCallerWentAway[] = "caller went away";

// In the order in which they are made; each may use those before it.
struct JobService::Parts {
  Parts(const JobServiceOptions& options, const std::vector<Engine*>& engines, Clock& clock_in);
  // The log goes before the states: its last writes call back into them.
  ~Parts();

  // Called on the thread of the group's executor, whose current work is its last. The other groups
  // serve on.
  void LoseGroup(int group, DeviceLoss cause, const absl::Status& problem);

  // The first task of each executor, so that no model is loaded on a device that computes wrongly.
  void CheckDevice(int group, const std::filesystem::path& data_dir);

  // Runs the group's next job; returns false if none can run there now.
  bool RunNext(int group);

  absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(const std::filesystem::path& file,
                                                      const std::function<absl::Status()>& sync);

  // Takes over what an earlier process left. The store must be open.
  absl::Status Recover() ABSL_EXCLUSIVE_LOCKS_REQUIRED(probe_mutex);
  // Removes files that belong to no job any more, until it is told to stop. It looks at every job
  // that has files, so the start does not wait for it.
  void RemoveLeftovers(const std::stop_token& stop);
  // Returns figures about the data folder.
  StorageStats StorageNow();
  // Returns OK if a job could write its row, events and artifacts now.
  absl::Status ProbeStorage();
  // Waits until no job is being accepted, because the callbacks of the disk use the parts.
  void AwaitAccepted();
  // Opens the store for writing if it is not, and takes over what an earlier process left.
  absl::Status OpenForWriting() ABSL_LOCKS_EXCLUDED(probe_mutex);
  // Gives the store the room that is kept for removals. Returns whether there was any.
  bool MakeRoom();

  void Tell(const absl::Status& problem) {
    for (StateListener* listener : listeners) listener->OnProblem(problem);
  }
  // For a call that asked for this many jobs.
  void TellIfRejected(const absl::Status& status, int jobs) {
    if (status.ok()) return;
    for (StateListener* listener : listeners) listener->OnJobsRejected(status, jobs);
  }
  void ReportIfStorage(const absl::Status& problem) {
    if (ReasonOf(problem) == kReasonStorageUnavailable) storage.Report(problem);
  }

  // Turns of calls with one request_id (TurnKeyOf), and of changes to one ended job. The last
  // holder of a turn may be a change that the store forgets when it goes.
  Turns turns;
  DiskReserve disk;
  QueueEstimates queue_estimates;  // told by the models and the log, also while they go
  const std::vector<StateListener*> listeners;
  const std::function<std::string(std::string_view)> webhook_problem;
  const std::function<wan::v1::TraceContext()> new_trace;
  Clock& clock;
  const Quotas& quotas;
  ReopeningJobStore store;
  const std::filesystem::path database;
  const Ballast ballast;
  const ArtifactStore artifacts;
  const SavepointStore savepoints;
  FileDigests digests;
  StorageWatch storage;
  std::unique_ptr<EventLog> log;
  TimeEstimator estimator;
  ProgressWatch progress;
  DeadlineTimer timer;
  DeviceGroups groups;
  absl::Mutex canary_mutex;  // held while the record of canaries is read and written
  ModelTable models;
  ModelOperations model_operations;
  LiveJobs live;
  JobLedger ledger;
  JobOutlook outlook;
  JobOrder order;
  JobStates states;
  std::deque<JobRunner> runners;  // by group
  EndedJobs ended_jobs;
  Retention retention;
  Callers callers;
  Drainer drainer;
  absl::Mutex accepting_mutex;
  int accepting ABSL_GUARDED_BY(accepting_mutex) = 0;  // jobs and batches that are being accepted
  absl::Mutex probe_mutex;
  bool recovered ABSL_GUARDED_BY(probe_mutex) = false;
  absl::Mutex stop_mutex;
  bool stopped ABSL_GUARDED_BY(stop_mutex) = false;
  std::jthread sweep ABSL_GUARDED_BY(probe_mutex);  // last: it uses the others
};

}  // namespace wan::server
