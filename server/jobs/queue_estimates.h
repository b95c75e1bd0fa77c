// Restores the queue's estimates after a restart: keeps the rates of each model's stages in a file
// of the data folder, and plans the jobs of an earlier process as soon as their model is ready.
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
#include "server/store/input_links.h"
#include "server/store/job_store.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. Before Start, all functions do nothing.
class QueueEstimates final : public StateListener {
 public:
  // All members must outlive the last OnModelState and OnJobEndStored.
  struct Parts {
    DeviceGroups* groups = nullptr;
    const ModelTable* models = nullptr;
    JobStore* store = nullptr;
    const InputLinks* input_links = nullptr;
    JobOrder* order = nullptr;
    TimeEstimator* estimator = nullptr;
    Clock* clock = nullptr;
    // The content of `file` is used only if its first line is `device`, because another device or
    // dtype has other rates. The object ignores a file that is missing, damaged or from another
    // device.
    std::filesystem::path file;
    std::string device;
  };
  // Reads the file with the rates. Call Start once, before the rest of the service begins.
  void Start(Parts parts);

  // If the model is READY, posts a task that plans the model's jobs of an earlier process.
  void OnModelState(const wan::v1::Model& model) override;
  // Queues a write of the file, at most once a minute, because syncing the file competes with
  // writing the jobs' rows. Does not wait for the disk.
  void OnJobEndStored() override;
  // If the rates have changed, queues a write of the file without waiting for the write. If the
  // write fails, the next process relearns the rates; the failure is not reported.
  void Keep();
  // Like Keep, but waits for the write. No function may be called after Finish.
  void Finish();

 private:
  void PlanJobsOf(const std::string& model) const;
  // Writes the file, on the writer's thread.
  void Write();

  Parts parts_;
  absl::Mutex mutex_;
  absl::Time kept_at_ ABSL_GUARDED_BY(mutex_) =
      absl::InfinitePast();  // when OnJobEndStored last called Keep, on the steady clock
  // The rates that are in the file; after Start only the writer's thread uses it.
  std::string written_;
  std::optional<SerialThread> writer_{std::in_place};
};

}  // namespace wan::server
