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

// Thread-safe for different jobs; one thread at a time for one job. `job` is "jobs/ID".
//
//   ROOT/savepoints/ID       a line with SHA-256, identity and step, then the engine's bytes
//   ROOT/savepoints/ID.new   being written
class SavepointStore {
 public:
  // Does not touch the disk: Write creates the folder if it is missing.
  explicit SavepointStore(const std::filesystem::path& root) : folder_(root / "savepoints") {}

  // Replaces the job's savepoint and returns when that is on the disk; after an error or a power
  // cut the one before is there. `identity` identifies what the savepoint was made from, as
  // "MAKERS.FILES", without spaces or line ends. FILES (the model's files) may be missing.
  absl::Status Write(std::string_view job, std::string_view identity,
                     const Savepoint& savepoint) const;

  // Returns the job's savepoint. NOT_FOUND if there is none; FAILED_PRECONDITION if its identity
  // differs from `identity`; DATA_LOSS if its bytes have changed.
  absl::StatusOr<Savepoint> Read(std::string_view job, std::string_view identity) const;

  // Returns the steps of the job's savepoint, whole or not; 0 without one. Reads only its first
  // line.
  int StepsKept(std::string_view job) const;

  // If the removal fails, the next start tries again.
  void Remove(std::string_view job) const;

  // Call at the start: removes unfinished files, and the savepoints of jobs that `keep` rejects.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;

 private:
  std::filesystem::path PathOf(std::string_view job) const;

  const std::filesystem::path folder_;
};

}  // namespace wan::server
