// Ends all running work, either for a drain, after which the server still answers calls, or for a
// stop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/job_outlook.h"
#include "server/jobs/job_states.h"
#include "server/jobs/model_operations.h"
#include "server/jobs/stop_mode.h"
#include "server/store/group_sync.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"
#include "wan/v1/administration.pb.h"

namespace wan::server {

// Thread-safe. A drain and a stop both close JobStates, so that no job is accepted or begun; cancel
// the loads and warm-ups of models; and end the running jobs as the mode says. Queued jobs stay
// queued.
class Drainer {
 public:
  // All members must outlive the drainer.
  struct Parts {
    JobStates& states;
    const JobOutlook& outlook;
    ModelOperations& models;
    EventLog& log;
    Clock& clock;
    std::vector<StateListener*> listeners;
  };
  // Receives the result of a drain; ABORTED (DRAIN_TAKEN_BACK) if Undrain came before the drain's
  // end.
  using Done = std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)>;

  explicit Drainer(Parts parts);
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;
  // Waits like Join().
  ~Drainer() = default;

  // Begins a drain and returns without waiting for its end: `done` is called once, on the drainer's
  // thread or the caller's, when no job runs any more and the jobs' new states are on the disk.
  // Running jobs may go on for at most `timeout`. A second call during a drain waits for that
  // drain's end; its mode and timeout have no effect. The server stays drained until Undrain or a
  // restart.
  void Begin(StopMode mode, absl::Duration timeout, Done done);

  using Undone = std::function<void(const absl::Status&)>;
  // Reverts a drain: jobs are accepted and begun again, loads that the drain cancelled restart, and
  // waiting calls of Begin end with ABORTED. Running jobs go on; jobs that the drain has already
  // told to stop return to the queue and are resumed later. Returns without waiting; `done` is
  // called once, on the drainer's thread or the caller's, without waiting for jobs. Fails with
  // FAILED_PRECONDITION (NOT_DRAINING) if there is no drain.
  void Undrain(Undone done);

  // Whether Begin or Stop has been called, and no Undrain since.
  bool draining() const;

  // Ends the running jobs for a stop and returns when no job runs. The jobs may go on for at most
  // `grace`, even if a drain that is under way allows more. If a drain is under way, its `done` has
  // been called when Stop returns.
  void Stop(StopMode mode, absl::Duration grace);

  // Waits until every drain and Undrain that has begun is over. Later calls do nothing. Do not call
  // Join on the drainer's thread.
  void Join();

 private:
  // Ends each running job when `limit` or the mode's decision says so. Returns when no job runs, or
  // soon after Undrain was called.
  void EndRunning(StopMode mode, absl::Duration limit, std::string_view reason);
  // The second half of Undrain; runs on the drainer's thread, after the drain's task.
  void FinishUndrain(const Undone& done);
  void Run(StopMode mode, absl::Duration timeout, const std::vector<std::string>& running);

  const Parts parts_;
  mutable absl::Mutex mutex_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool undraining_ ABSL_GUARDED_BY(mutex_) = false;  // true from Undrain until FinishUndrain ends
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<wan::v1::DrainResponse> outcome_ ABSL_GUARDED_BY(mutex_);
  SerialThread thread_;  // declared last: its tasks use the members above
};

}  // namespace wan::server
