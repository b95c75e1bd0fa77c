// Keeps the files and savepoints of jobs in an object store, beside those on the disk.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/objects/object_store.h"

namespace wan::server {

// Thread-safe. `job` has the form "jobs/ID".
//
//   artifacts/ID/ATTEMPT/FILE   files of an attempt; only those of the attempt that completed count
//   savepoints/ID               the job's latest savepoint
//
// Removals return at once: a thread carries them out, and tries again while the store is away.
// Those that wait when the process ends are found again by Sweep and SweepSavepoints.
class JobObjects {
 public:
  using OnProblem = std::function<void(const absl::Status&)>;

  // `store` and `clock` must outlive the object. `on_problem` is called on any thread.
  JobObjects(ObjectStore& store, Clock& clock, OnProblem on_problem);
  JobObjects(const JobObjects&) = delete;
  JobObjects& operator=(const JobObjects&) = delete;
  // Drops the removals that wait.
  ~JobObjects();

  // Uploads the files, and blocks until the store has all of them. While the store refuses them or
  // is away, tells `on_problem` why and tries again, until `stop` is requested: then removes what
  // it has uploaded and returns CANCELLED. Other errors, which name no place of the store either:
  // a file cannot be read; INVALID_ARGUMENT if the store can never take it.
  absl::Status Publish(std::string_view job, int attempt,
                       std::span<const std::filesystem::path> files, const std::stop_token& stop);

  // A published file. The errors name no place of the store, because callers see them: NOT_FOUND;
  // UNAVAILABLE with a retry delay, after `on_problem` was told why. ObjectStore::StopReads ends
  // both functions.
  struct File {
    std::string job;
    int attempt = 0;
    std::string name;
  };
  absl::StatusOr<uint64_t> SizeOf(const File& file);
  // Returns `bytes` bytes at the offset; fewer only if the file ends.
  absl::StatusOr<std::string> ReadAt(const File& file, uint64_t offset, uint64_t bytes);

  // Uploads a savepoint; gives up after a short time while the store is away, because the next one
  // follows. CANCELLED after a stop.
  absl::Status KeepSavepoint(std::string_view job, const std::filesystem::path& file,
                             const std::stop_token& stop);
  // Returns the bytes of the job's savepoint. While the store refuses to give them or is away,
  // tells `on_problem` why and tries again. Errors: NOT_FOUND; CANCELLED after a stop.
  absl::StatusOr<std::string> ReadSavepoint(std::string_view job, const std::stop_token& stop);

  void RemoveJob(std::string_view job);                   // all its files
  void RemoveAttempt(std::string_view job, int attempt);  // those of one attempt
  void RemoveFile(std::string_view job, std::string_view file);
  void RemoveSavepoint(std::string_view job);
  // Blocks until no removal waits.
  void AwaitRemovals();

  // Calls `visit` for each file in the store, until it returns false. The files of one attempt
  // follow each other, and so do the attempts of one job. Blocks; the time grows with the number of
  // files.
  absl::Status VisitFiles(const std::function<bool(const File& file)>& visit);
  // The same for each job that has a savepoint.
  absl::Status VisitSavepoints(const std::function<bool(const std::string& job)>& visit);

 private:
  // Removes the objects whose keys begin with `prefix` and, unless `name` is empty, end with it.
  struct Removal {
    std::string prefix;
    std::string name;
    friend bool operator<(const Removal& a, const Removal& b) {
      return std::tie(a.prefix, a.name) < std::tie(b.prefix, b.name);
    }
  };
  void Remove(Removal removal);
  absl::Status Carry(const Removal& removal, const std::stop_token& stop);
  void Loop(const std::stop_token& stop);
  absl::Status ForCallers(const absl::Status& status, const File& file) const;
  absl::Status Upload(const std::string& key, const std::filesystem::path& file,
                      std::string_view job, const std::stop_token& stop);
  // Calls `attempt` until it returns OK, or CANCELLED after a stop. Tells each new problem, after
  // `waits`, which is a clause about what waits for the store.
  absl::Status Persist(const std::string& waits, const std::function<absl::Status()>& attempt,
                       const std::stop_token& stop);

  ObjectStore& store_;
  Clock& clock_;
  const OnProblem on_problem_;
  absl::Mutex mutex_;
  std::deque<Removal> queue_ ABSL_GUARDED_BY(mutex_);
  std::set<Removal> waiting_ ABSL_GUARDED_BY(mutex_);  // those in the queue, and the running one
  bool end_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread remover_;  // declared last: it uses the members above
};

}  // namespace wan::server
