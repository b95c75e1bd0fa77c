// Runs the attempts of jobs in one device group, from the queue to their artifacts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/job_table.h"
#include "server/jobs/model_registry.h"
#include "server/jobs/progress_watch.h"
#include "server/jobs/storage_watch.h"
#include "server/jobs/time_estimator.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"
#include "server/store/savepoint_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"

namespace wan::server {

// For the thread of the group's executor only, except least_free_bytes().
class JobRunner {
 public:
  // All must outlive the runner.
  struct Parts {
    DeviceGroups& groups;
    int group = 0;
    JobStore& store;
    JobTable& table;
    const ModelRegistry& models;
    EventLog& log;
    const ArtifactStore& artifacts;
    const SavepointStore& savepoints;
    TimeEstimator& estimator;
    Clock& clock;
    StorageWatch& storage;
    std::vector<SinkFactory> sinks;
    // Called on the executor's thread after a job has lost the device; the job is back in the queue
    // by then, or has ended.
    std::function<void(int group, const absl::Status&)> on_device_lost;
    std::vector<StateListener*> listeners;
    // Least time between two savepoints of a job; zero: one after every step.
    absl::Duration savepoint_interval;
    std::string server_version;
    std::string server_revision;
    std::string data_dir;
    // By how much the priority of a job that takes over must be higher; 0: none does.
    int preempt_priority_gap = 0;
    ProgressWatch& progress;
  };
  explicit JobRunner(Parts parts)
      : parts_(std::move(parts)), engine_(parts_.groups.engine(parts_.group)) {}

  // Runs the next job, from its latest savepoint on if it has one, until it completes, fails, is
  // cancelled or is requeued. Returns false if no job can run now. If the device is lost, the
  // attempt counts as lost and the job goes back to the queue. If the data folder refuses writes,
  // the job goes back without a count, and no other job begins until the folder takes writes again.
  bool RunNext();

  // A job begins only if more bytes than this are free: the room that was too small for the last
  // job that ran out of space. 0: no demand. May be called from any thread.
  uint64_t least_free_bytes() const { return least_free_bytes_; }

 private:
  // Returns why the data folder refused the attempt's files; OK if something else ended the
  // attempt with `result`.
  absl::Status StorageProblem(const Attempt& attempt, const absl::Status& result);
  // The job has ended.
  void Forget(const std::string& job);
  // Calls Execute inside the span Total_Execution, after Queue_Wait.
  absl::StatusOr<std::vector<wan::v1::Artifact>> Measure(const Attempt& attempt);
  // Writes to the report where the attempt runs, and how its model was loaded.
  void DescribeSurroundings(const std::string& model, ReportSink& sink) const;
  // Returns what the job's owner gets to know of an error: names of files without their folders. If
  // there is more to it, the listeners are told of the whole.
  absl::Status Public(const wan::v1::Job& job, const absl::Status& status) const;
  // Returns what the engine says of the job's model.
  ModelDescription DescriptionOf(const wan::v1::Job& job) const;
  // Plans, generates and publishes the artifacts.
  absl::StatusOr<std::vector<wan::v1::Artifact>> Execute(const Attempt& attempt, EventSink& events,
                                                         ProgressSink& progress,
                                                         Recorder& recorder);

  const Parts parts_;
  Engine& engine_;  // of the group
  std::atomic<uint64_t> least_free_bytes_ = 0;
  // How often the disk has refused the files of a job, with room found right after.
  std::map<std::string, int> refusals_;
};

}  // namespace wan::server
