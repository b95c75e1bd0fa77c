// The savepoints of one attempt: when they are kept, and the thread that writes them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "engine/api/savepoint.h"
#include "server/store/savepoint_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Before the decoding a savepoint is kept if as much work as this would be lost, however long the
// interval is: writing it costs a thousandth of that.
inline constexpr absl::Duration kWorkWorthKeeping = absl::Seconds(5);

// Everything that decides a job's latents besides the number of steps: request, image, provenance,
// and the model with the versions of its files. A savepoint of another identity would be continued
// to a video that no single server could make again. As SavepointStore::Write takes it.
std::string SavepointIdentity(const wan::v1::Job& job, const wan::v1::Provenance& provenance,
                              const ModelDescription& model);

// For one attempt. The engine calls the keeper's methods on its thread; a savepoint that is kept is
// written by a thread of the object's own, one at a time; where the disk is slower than the steps,
// the latest waits and those before it are left out.
class JobSavepoints final : public SavepointKeeper {
 public:
  struct Parts {
    const SavepointStore& store;  // must outlive the object, as must the clock
    Clock& clock;
    std::string job;  // "jobs/ID"
    std::string identity;
    // Least time between two savepoints, and before the first; zero: one after every step.
    absl::Duration interval;
    // Whether the job, which was asked to stop, will run again.
    std::function<bool()> will_run_again;
    // Called for each savepoint that is on the disk, with its seconds. Called on the writer's
    // thread.
    std::function<void(int steps_done, double seconds)> on_written;
    // Called for a savepoint that cannot be read or written; the job goes on without it. Called on
    // either thread.
    std::function<void(const absl::Status&)> on_problem;
  };
  explicit JobSavepoints(Parts parts);
  JobSavepoints(const JobSavepoints&) = delete;
  JobSavepoints& operator=(const JobSavepoints&) = delete;
  // Returns once everything that was kept is on the disk, or has failed.
  ~JobSavepoints() override;

  std::optional<Savepoint> Load() override;
  bool IsDue(bool last_step) override;
  bool WantsWhenStopped() override;
  void Keep(Savepoint savepoint) override;
  void Refuse(const std::string& reason) override;

 private:
  void Loop();

  const Parts parts_;
  int64_t last_nanos_;  // when the latest was kept; the engine's thread only
  absl::Mutex mutex_;
  std::optional<Savepoint> waiting_ ABSL_GUARDED_BY(mutex_);
  bool end_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_;  // begins with the first savepoint
};

}  // namespace wan::server
