// Makes a sound database from the readable rows of a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace wan::server {

struct RepairResult {
  // Whether nothing was wrong. Nothing has been changed then.
  bool was_whole = false;
  // The path of the kept damaged file; its write-ahead log, if any, has the same name with "-wal"
  // appended.
  std::filesystem::path kept;
  int64_t jobs = 0;    // that the new database has
  int64_t events = 0;  // of these jobs
  // The losses, for people: by job, and those that belong to no known job.
  std::vector<std::string> losses;
  // Folders of `artifacts` whose jobs the new database does not have, with their bytes. They stay.
  std::vector<std::string> unknown_files;
};

// Checks DATA_DIR/jobs.db and, if it is damaged, puts a new database in its place that has every
// job, event, report and image that can be read, from every page of the old one. One process at a
// time.
//
// An interrupted repair changes nothing but for its last moments; then no server starts on the
// folder (RepairIsPending) until another repair has ended.
//
// UNAVAILABLE while a server uses the folder; NOT_FOUND if there is no database;
// FAILED_PRECONDITION if a newer server wrote it; other errors if the disk refuses. Nothing has
// changed after an error.
absl::StatusOr<RepairResult> RepairDatabase(const std::filesystem::path& data_dir, absl::Time now);

// Returns whether a repair of this database was interrupted while it put the new file in place.
bool RepairIsPending(const std::filesystem::path& database);

}  // namespace wan::server
