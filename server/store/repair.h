// Makes a new database from the readable rows of a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace wan::server {

struct RepairResult {
  // True if the database was not damaged; then nothing was changed.
  bool was_whole = false;
  // The path of the kept damaged file; its write-ahead log, if any, has the same name with "-wal"
  // appended.
  std::filesystem::path kept;
  int64_t jobs = 0;    // in the new database
  int64_t events = 0;  // of the `jobs`
  // Readable descriptions of the losses, by job, and of those that belong to no known job.
  std::vector<std::string> losses;
  // Folders in `artifacts`, with their bytes, whose jobs are not in the new database. They are not
  // removed.
  std::vector<std::string> unknown_files;
};

// Checks DATA_DIR/jobs.db. If it is damaged, replaces it by a new database with every job, event,
// report and image that is readable in any page of the old one. One process at a time.
//
// A repair that is interrupted changes nothing, except at its very end; then no server starts on
// the folder (RepairIsPending) until another repair has completed.
//
// UNAVAILABLE while a server uses the folder; NOT_FOUND if there is no database;
// FAILED_PRECONDITION if a newer server wrote it; other errors if the disk refuses. Nothing has
// changed after an error.
absl::StatusOr<RepairResult> RepairDatabase(const std::filesystem::path& data_dir, absl::Time now);

// Returns whether a repair of this database was interrupted while it put the new file in place.
bool RepairIsPending(const std::filesystem::path& database);

}  // namespace wan::server
