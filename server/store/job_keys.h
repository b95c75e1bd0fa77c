// Reads and writes the keys by which jobs are listed: for each job, a small row in job_keys and its
// labels in job_labels.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>

#include "server/store/job_pages.h"
#include "server/store/job_store.h"
#include "server/store/statements.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Call all functions of this file with the connection's lock held, and those that write inside a
// transaction. The functions throw the exceptions of SQLite.

// Adds the keys of a job that has no keys yet. If the job has ended, its rows must have been
// written.
void InsertJobKeys(Statements& db, int64_t number, const wan::v1::Job& job);
// Replaces the keys of `job`, and its labels if `labels`. The job's rows must have been written.
void UpdateJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job, bool labels);
void DeleteJobKeys(SQLite::Database& db, int64_t number);
// Rebuilds the keys of all jobs from the jobs' rows, for migrations and repairs. The time grows
// with the number of jobs.
void RebuildJobKeys(SQLite::Database& db);

// Visits the jobs after `after` (nullopt: from the first on) in the query's order, until it has
// found `limit` jobs or visited kJobsOfAScan. A query with an owner visits only that owner's jobs.
JobScan ScanJobKeys(SQLite::Database& db, const JobQuery& query,
                    const std::optional<JobPlace>& after, int limit);

}  // namespace wan::server
