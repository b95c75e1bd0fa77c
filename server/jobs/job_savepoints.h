// Decides when an attempt keeps savepoints, and writes the savepoints on a separate thread.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/model_file.h"
#include "engine/api/savepoint.h"
#include "server/store/file_digests.h"
#include "server/store/savepoint_store.h"

namespace wan::server {

// A job keeps a savepoint before decoding if this much work would otherwise be at risk, even if the
// interval has not passed, because writing a savepoint takes about a thousandth of this time.
inline constexpr absl::Duration kWorkWorthKeeping = absl::Seconds(5);

// Each object serves one attempt. The engine calls the SavepointKeeper methods on the engine's
// thread; the object's own thread writes one savepoint at a time. If the disk is slower than the
// steps, only the newest savepoint waits and older ones are dropped. A savepoint also ends the
// upload of the one before it to the object store.
class JobSavepoints final : public SavepointKeeper {
 public:
  struct Parts {
    const SavepointStore& store;  // the references must outlive the object
    Clock& clock;
    FileDigests& digests;
    std::string job;  // "jobs/ID"
    int attempt = 1;  // the first has no savepoint, so Load does not look for one
    SavepointOrigin origin;
    std::vector<ModelFile> files;  // FilesUsedBy the job, in the order of the origin's files
    // Whether the job fails (SAVEPOINT_UNUSABLE) rather than begin at its start although it has had
    // a savepoint.
    bool required = false;
    // Whether the job is known to have had a savepoint.
    bool had_steps = false;
    std::stop_token stop;  // of the attempt
    // Least time between two savepoints, and before the first one; zero: the job keeps a savepoint
    // after every step.
    absl::Duration interval;
    // Returns whether the job will run again after it was asked to stop or its attempt has failed.
    std::function<bool()> will_run_again;
    // JobSavepoints calls on_written on the writer's thread when a savepoint is on the disk, with
    // the seconds that writing took.
    std::function<void(int steps_done, double seconds)> on_written;
    // JobSavepoints calls on_problem on the engine's or the writer's thread if a savepoint cannot
    // be read or written; the job goes on without the savepoint.
    std::function<void(const absl::Status&)> on_problem;
  };
  explicit JobSavepoints(Parts parts);
  JobSavepoints(const JobSavepoints&) = delete;
  JobSavepoints& operator=(const JobSavepoints&) = delete;
  // Waits until the last savepoint is on the disk or writing it has failed. Gives its upload a few
  // seconds if the job will run again, otherwise none.
  ~JobSavepoints() override;

  // Reads the disk alone: the savepoint has been fetched before (SavepointStore::Fetch). Fails with
  // STORAGE_UNAVAILABLE if the disk cannot be read now.
  absl::StatusOr<std::optional<Savepoint>> Load() override;
  bool IsDue(bool last_step) override;
  bool WantsWhenStopped() override;
  void Keep(Savepoint savepoint) override;
  absl::Status Refuse(const std::string& reason) override;

 private:
  void Loop();
  void Write(const Savepoint& savepoint, const std::stop_token& stop_upload);

  Parts parts_;         // only the writer changes it, and only the digests of `origin`
  int64_t last_nanos_;  // time of the latest savepoint; used only on the engine's thread
  absl::Mutex mutex_;
  std::optional<Savepoint> waiting_ ABSL_GUARDED_BY(mutex_);
  std::stop_source upload_ ABSL_GUARDED_BY(mutex_);  // of the savepoint that the writer has
  bool writes_ ABSL_GUARDED_BY(mutex_) = false;      // the writer runs
  bool end_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;  // the time for uploads is over
  std::thread writer_;                        // started by the first savepoint
};

}  // namespace wan::server
