// Where the savepoints of unfinished jobs lie (engine/api/savepoint.h): one file a job, the latest.
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
  // cut the one before is there. `identity` says from what it was made, as "MAKERS.FILES"; it has
  // no spaces or line ends. FILES, which may be missing, stands for the files of the model.
  absl::Status Write(std::string_view job, std::string_view identity,
                     const Savepoint& savepoint) const;

  // The job's savepoint. NOT_FOUND if there is none; FAILED_PRECONDITION if it was made from
  // something else than `identity`; DATA_LOSS if its bytes are not those that were written.
  absl::StatusOr<Savepoint> Read(std::string_view job, std::string_view identity) const;

  // The steps of the job's savepoint, whether that is whole or not; 0 without one. Reads a line.
  int StepsKept(std::string_view job) const;

  // What cannot be removed now goes at the next start.
  void Remove(std::string_view job) const;

  // At start: removes what was being written, and the savepoints of jobs that `keep` does not want.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;

 private:
  std::filesystem::path PathOf(std::string_view job) const;

  const std::filesystem::path folder_;
};

}  // namespace wan::server
