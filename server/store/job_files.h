// Reads and writes the table job_files, which has a row for each file from which the model of a
// job's latest attempt was read.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/store/job_store.h"

namespace wan::server {

// Call both functions with the connection's lock held, ReplaceJobFiles also inside a transaction.
// The functions throw the exceptions of SQLite.

// Replaces the files of the job with this number.
void ReplaceJobFiles(SQLite::Database& db, int64_t number, std::span<const JobFile> files);

// Returns the files in the order of their names; none for an unknown job.
std::vector<JobFile> ReadJobFiles(SQLite::Database& db, std::string_view job);

}  // namespace wan::server
