// Makes a new database from those rows of a damaged one that can be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace wan::server {

struct RepairResult {
  // True if the database was not damaged; then the repair has changed nothing.
  bool was_whole = false;
  // The path at which the damaged file was kept; its write-ahead log, if any, has the same name
  // with "-wal" appended.
  std::filesystem::path kept;
  int64_t jobs = 0;    // number of jobs in the new database
  int64_t events = 0;  // number of events of these jobs
  // Descriptions of the losses for people: first job by job, then the losses that belong to no
  // known job.
  std::vector<std::string> losses;
  // Folders in `artifacts`, with their sizes in bytes, whose jobs are not in the new database. The
  // repair does not remove these folders.
  std::vector<std::string> unknown_files;
};

// Checks DATA_DIR/jobs.db. If the database is damaged, replaces it by a new database with every
// job, event, report and image that is readable in any page of the damaged one. Only one process at
// a time may repair a database.
//
// An interrupted repair changes nothing, except if it was interrupted while it exchanged the files:
// then no server starts on the folder (RepairIsPending) until another repair has completed.
//
// Errors: UNAVAILABLE while a server uses the folder; NOT_FOUND if the folder has no database;
// FAILED_PRECONDITION if a newer server wrote the database; other codes if the disk refuses reads
// or writes. After an error nothing has changed.
absl::StatusOr<RepairResult> RepairDatabase(const std::filesystem::path& data_dir, absl::Time now);

// Returns whether a repair of this database was interrupted while it put the new file in place.
bool RepairIsPending(const std::filesystem::path& database);

}  // namespace wan::server
