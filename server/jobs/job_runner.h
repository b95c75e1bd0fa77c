// One attempt of one job, from the queue to its artifacts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/job_table.h"
#include "server/jobs/storage_watch.h"
#include "server/jobs/time_estimator.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"

namespace wan::server {

// Used by the executor's thread only.
class JobRunner {
 public:
  // All must outlive the runner.
  struct Parts {
    Engine& engine;
    JobStore& store;
    JobTable& table;
    EventLog& log;
    const ArtifactStore& artifacts;
    TimeEstimator& estimator;
    Clock& clock;
    StorageWatch& storage;
    std::vector<SinkFactory> sinks;
    // Hears of a job that ended because the device is lost; the job is back in the queue by then.
    std::function<void(const absl::Status&)> on_device_lost;
    std::string server_version;
  };
  explicit JobRunner(Parts parts) : parts_(std::move(parts)) {}

  // Runs the next job to its end, whatever that is. A job whose device is lost counts one lost
  // attempt and goes back to the queue. So does, without a count, one that the storage refuses;
  // none begins then until the storage takes writes again. Returns false if none can run now.
  bool RunNext();

  // Bytes that must be more than free before a job begins: what the last one that ran out of space
  // had. 0: any.
  uint64_t least_free_bytes() const { return least_free_bytes_; }

 private:
  // Why the attempt's files, or a part of them, cannot have been written; OK if that is not what
  // ended it.
  absl::Status StorageProblem(const Attempt& attempt);
  // With telemetry: Queue_Wait, and Total_Execution around the work.
  absl::StatusOr<std::vector<wan::v1::Artifact>> Measure(const Attempt& attempt);
  // The work itself.
  absl::StatusOr<std::vector<wan::v1::Artifact>> Execute(const Attempt& attempt, EventSink& events,
                                                         Recorder& recorder);

  const Parts parts_;
  std::atomic<uint64_t> least_free_bytes_ = 0;
};

}  // namespace wan::server
