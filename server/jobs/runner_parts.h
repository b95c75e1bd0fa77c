// The parts of the service that a JobRunner needs to run the attempts of a device group.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_ledger.h"
#include "server/jobs/job_states.h"
#include "server/jobs/model_table.h"
#include "server/jobs/progress_watch.h"
#include "server/jobs/receipts.h"
#include "server/jobs/storage_watch.h"
#include "server/jobs/time_estimator.h"
#include "server/store/artifact_store.h"
#include "server/store/file_digests.h"
#include "server/store/input_links.h"
#include "server/store/job_store.h"
#include "server/store/savepoint_store.h"
#include "server/watch/listener.h"
#include "server/watch/live_video.h"

namespace wan::server {

// All members must outlive the group's runner.
struct RunnerParts {
  DeviceGroups& groups;
  int group = 0;
  JobStates& states;
  JobLedger& ledger;
  JobStore& store;
  const ModelTable& models;
  const ArtifactStore& artifacts;
  const SavepointStore& savepoints;
  const InputLinks& input_links;
  FileDigests& digests;
  ReceiptFiles& receipt_files;
  TimeEstimator& estimator;
  ProgressWatch& progress;
  StorageWatch& storage;
  LiveVideos& live_videos;
  Clock& clock;
  std::vector<SinkFactory> sinks;
  std::vector<StateListener*> listeners;
  // JobRunner calls on_device_lost on the executor's thread after an attempt has lost the device
  // and the attempt's job has been requeued or has ended.
  std::function<void(int group, const absl::Status&)> on_device_lost;
  // Least time between two savepoints of a job; zero: the job keeps a savepoint after every step.
  absl::Duration savepoint_interval;
  // A waiting job preempts a running one if its priority is higher by this much or more; 0: never.
  int preempt_priority_gap = 0;
  std::string server_version;
  std::string server_revision;
  std::string data_dir;

  Engine& engine() const { return groups.engine(group); }
};

}  // namespace wan::server
