// Stores the latest savepoint of each unfinished job (engine/api/savepoint.h), one file per job.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/savepoint.h"

namespace wan::server {

// Only one thread at a time may use one job's savepoint; otherwise thread-safe. `job` is "jobs/ID".
//
// ROOT/savepoints/ID a line with SHA-256, identity and step, then the engine's bytes
// ROOT/savepoints/ID.new a savepoint that is being written
class SavepointStore {
 public:
  // Does not touch the disk: Write creates the folder if it is missing.
  explicit SavepointStore(const std::filesystem::path& root) : folder_(root / "savepoints") {}

  // Replaces the job's savepoint and returns when it is on the disk. After an error or a power cut
  // the previous one is still there. `identity` (SavepointIdentity) has the form "MAKERS.FILES"
  // without spaces or line ends; FILES, for the model's files, may be missing.
  absl::Status Write(std::string_view job, std::string_view identity,
                     const Savepoint& savepoint) const;

  // Returns the job's savepoint. NOT_FOUND if there is none; FAILED_PRECONDITION if its identity
  // differs from `identity`; DATA_LOSS if its bytes have changed.
  absl::StatusOr<Savepoint> Read(std::string_view job, std::string_view identity) const;

  // Returns the steps of the job's savepoint, even if it is damaged; 0 without one. Reads only its
  // first line.
  int StepsKept(std::string_view job) const;

  // Removes the job's savepoint. If that fails, the next start tries again.
  void Remove(std::string_view job) const;

  // Removes unfinished files, and the savepoints of jobs that `keep` rejects. Call it at the
  // server's start.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;

 private:
  std::filesystem::path PathOf(std::string_view job) const;

  const std::filesystem::path folder_;
};

}  // namespace wan::server
