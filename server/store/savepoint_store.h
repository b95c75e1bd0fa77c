// Stores the latest savepoint of each unfinished job (engine/api/savepoint.h), one file per job.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/savepoint.h"
#include "server/store/job_objects.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// What a savepoint was computed from. Equal origins compute the same latents; server/jobs/
// job_savepoints.h makes and compares them.
struct SavepointOrigin {
  std::string request;  // SHA-256, in lower-case hex, of the request with its inputs
  wan::v1::Provenance provenance;
  std::vector<JobFile> files;  // sorted by name
};

struct KeptSavepoint {
  SavepointOrigin origin;
  Savepoint savepoint;
};

// Only one thread at a time may use the savepoint of one job; otherwise the object is thread-safe.
// In all functions `job` has the form "jobs/ID".
//
//   ROOT/savepoints/ID       "SHA256 savepoint2 STEPS", where SHA256 is that of all that follows
//                            it, lines with the origin, an empty line, then the engine's bytes
//   ROOT/savepoints/ID.new   a savepoint that is being written
class SavepointStore {
 public:
  // Does not touch the disk: Write creates the folder if it is missing.
  // `objects` (null: there is no object store) must outlive the object.
  explicit SavepointStore(const std::filesystem::path& root, JobObjects* objects = nullptr)
      : folder_(root / "savepoints"), objects_(objects) {}

  // Replaces the job's savepoint and returns when the new one is on the disk. After an error or a
  // power cut the previous savepoint is still there.
  absl::Status Write(std::string_view job, const SavepointOrigin& origin,
                     const Savepoint& savepoint) const;

  // Copies the job's savepoint into the object store, if there is one. Blocks for about ten seconds
  // while the store is away, and while bytes flow, until `stop` is requested (CANCELLED).
  absl::Status Upload(std::string_view job, const std::stop_token& stop) const;

  // Copies the job's savepoint from the object store to the disk if the disk has none. Waits for a
  // store that is away. Errors: NOT_FOUND if the object store has none, or there is no object
  // store; CANCELLED after a stop; those of the disk (Read).
  absl::Status Fetch(std::string_view job, const std::stop_token& stop) const;

  // Returns the job's savepoint on the disk. Fails with NOT_FOUND if the job has none;
  // FAILED_PRECONDITION if an earlier release wrote it, in a form that is not read any more;
  // DATA_LOSS if its bytes have changed. If the disk fails, the reason is STORAGE_UNAVAILABLE.
  absl::StatusOr<KeptSavepoint> Read(std::string_view job) const;

  // Returns the origin of the job's savepoint on the disk without reading the engine's bytes, so
  // the savepoint may be damaged; nullopt if there is none, or its head cannot be read.
  std::optional<SavepointOrigin> OriginOf(std::string_view job) const;

  // Returns how many steps the job's savepoint contains, even if the savepoint is damaged; 0 if
  // there is none. Reads only the first line of the file.
  int StepsKept(std::string_view job) const;

  // Removes the job's savepoint, also from the object store. If the removal fails, the next start
  // tries again.
  void Remove(std::string_view job) const;

  // Removes incomplete files, and the savepoints of jobs that `keep` rejects. Call RemoveLeftovers
  // at the server's start.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;
  // Removes the savepoints of jobs that `has_ended` names from the object store; ends early when it
  // returns nullopt. Blocks; call it after the server's start.
  absl::Status RemoveLeftObjects(
      const std::function<std::optional<bool>(const std::string& job)>& has_ended) const;

 private:
  std::filesystem::path PathOf(std::string_view job) const;

  const std::filesystem::path folder_;
  JobObjects* const objects_;  // null: there is no object store
};

}  // namespace wan::server
