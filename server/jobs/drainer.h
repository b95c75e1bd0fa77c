// Ends all running work, for a drain (everything else goes on) and for a stop.
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

// Thread-safe. Both a drain and a stop close the states, so that no job is accepted or begun; end
// loads and warm-ups, which the next process does again in any case; and end the running jobs
// as their mode says. Queued jobs stay queued.
class Drainer {
 public:
  // All must outlive the drainer.
  struct Parts {
    JobStates& states;
    const JobOutlook& outlook;
    ModelOperations& models;
    EventLog& log;
    Clock& clock;
    std::vector<StateListener*> listeners;
  };
  // ABORTED (DRAIN_TAKEN_BACK) if the drain was taken back.
  using Done = std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)>;

  explicit Drainer(Parts parts);
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;
  // Waits as Join().
  ~Drainer() = default;

  // Begins a drain and returns without waiting for its end: `done` is called once, when no job runs
  // any more and the disk has that, on a thread of the drainer's or the caller's. The running job
  // may go on for `timeout` at most. Only the first call decides about mode and timeout; later ones
  // wait for the same end. Undrain or a new process ends the state.
  void Begin(StopMode mode, absl::Duration timeout, Done done);

  using Undone = std::function<void(const absl::Status&)>;
  // Takes a drain back: jobs are accepted and begun again, loads that the drain ended begin anew,
  // and calls of Begin that still wait hear of it. Running jobs go on; those that the drain has
  // told to stop return to the queue, and go on from there. Does not wait: `done` is called when
  // that is done, which takes no longer than the drain's own bookkeeping, on a thread of the
  // drainer's or the caller's. FAILED_PRECONDITION (NOT_DRAINING).
  void Undrain(Undone done);

  // Whether Begin or Stop has been called, and no Undrain since.
  bool draining() const;

  // Stops: returns when no job runs. The running job may go on for `grace` at most, also where a
  // drain that is under way gave it longer. Such a drain has called its `done` when this returns.
  void Stop(StopMode mode, absl::Duration grace);

  // Waits until every drain and Undrain that has begun is over. Idempotent; not on the drainer's
  // thread, nor after this has gone.
  void Join();

 private:
  // Ends the running jobs, each when its time is over. Returns when no job runs, or soon after the
  // drain was taken back.
  void EndRunning(StopMode mode, absl::Duration limit, std::string_view reason);
  // After the drain's own task has ended.
  void FinishUndrain(const Undone& done);
  void Run(StopMode mode, absl::Duration timeout, const std::vector<std::string>& running);

  const Parts parts_;
  mutable absl::Mutex mutex_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool undraining_ ABSL_GUARDED_BY(mutex_) = false;  // until FinishUndrain has
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<wan::v1::DrainResponse> outcome_ ABSL_GUARDED_BY(mutex_);
  SerialThread thread_;  // last: its tasks use the others
};

}  // namespace wan::server
