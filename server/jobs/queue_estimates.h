// Restores the queue's estimates after a restart. A file of the data folder keeps the rates of each
// model's stages, and the jobs of an earlier process are planned as soon as their model is ready.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_order.h"
#include "server/jobs/model_table.h"
#include "server/jobs/time_estimator.h"
#include "server/store/group_sync.h"
#include "server/store/job_store.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. Before Start every call does nothing.
class QueueEstimates final : public StateListener {
 public:
  // All must live as long as models become ready and jobs end.
  struct Parts {
    DeviceGroups* groups = nullptr;
    const ModelTable* models = nullptr;
    JobStore* store = nullptr;
    JobOrder* order = nullptr;
    TimeEstimator* estimator = nullptr;
    Clock* clock = nullptr;
    // The file, and its required first line, because another device or dtype has other rates. A
    // file that is missing, damaged or another device's is no error.
    std::filesystem::path file;
    std::string device;
  };
  // Reads the file. Once, before anything else of the service runs.
  void Start(Parts parts);

  // Posts the planning of the model's jobs without known work to an executor.
  void OnModelState(const wan::v1::Model& model) override;
  // Queues a write of the file, at most once a minute, because syncing it competes with the jobs'
  // rows. Does not wait for the disk.
  void OnJobEndStored() override;
  // Has what was learned since the file was written be written. Does not wait for the disk. If the
  // write fails, the next process relearns the rates; the failure is not reported.
  void Keep();
  // The same, and waits for it. It must be the last call.
  void Finish();

 private:
  void PlanJobsOf(const std::string& model) const;
  // On the writer's thread.
  void Write();

  Parts parts_;
  absl::Mutex mutex_;
  absl::Time kept_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // of the steady clock
  std::string written_;  // before Start, then the writer's
  std::optional<SerialThread> writer_{std::in_place};
};

}  // namespace wan::server
