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

// Only one thread at a time may use the savepoint of one job; otherwise the object is thread-safe.
// In all functions `job` has the form "jobs/ID".
//
//   ROOT/savepoints/ID       a line with SHA-256, identity and step, then the engine's bytes
//   ROOT/savepoints/ID.new   a savepoint that is being written
class SavepointStore {
 public:
  // Does not touch the disk: Write creates the folder if it is missing.
  explicit SavepointStore(const std::filesystem::path& root) : folder_(root / "savepoints") {}

  // Replaces the job's savepoint and returns when the new one is on the disk. After an error or a
  // power cut the previous savepoint is still there. `identity` (SavepointIdentity) has the form
  // "MAKERS.FILES" without spaces or line ends; the part FILES, for the model's files, may be
  // missing.
  absl::Status Write(std::string_view job, std::string_view identity,
                     const Savepoint& savepoint) const;

  // Returns the job's savepoint. Fails with NOT_FOUND if the job has none; FAILED_PRECONDITION if
  // its identity differs from `identity`; DATA_LOSS if its bytes have changed.
  absl::StatusOr<Savepoint> Read(std::string_view job, std::string_view identity) const;

  // Returns how many steps the job's savepoint contains, even if the savepoint is damaged; 0 if
  // there is none. Reads only the first line of the file.
  int StepsKept(std::string_view job) const;

  // Removes the job's savepoint. If the removal fails, the next start tries again.
  void Remove(std::string_view job) const;

  // Removes incomplete files, and the savepoints of jobs that `keep` rejects. Call it at the
  // server's start.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;

 private:
  std::filesystem::path PathOf(std::string_view job) const;

  const std::filesystem::path folder_;
};

}  // namespace wan::server
