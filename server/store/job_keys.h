// The keys by which jobs are listed: a small row for each job in job_keys, and its labels in
// job_labels.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Call all functions with the connection's lock held, and those that write inside a transaction.
// They throw SQLite's exceptions.

// Adds the keys of a job that has none. If the job has ended, its rows must have been written.
void InsertJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job);
// Replaces the keys of `job`, and its labels if `labels`. Its rows must have been written.
void UpdateJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job, bool labels);
void DeleteJobKeys(SQLite::Database& db, int64_t number);
// Rebuilds the keys of all jobs from their rows, for migrations and repairs. The time grows with
// the number of jobs.
void RebuildJobKeys(SQLite::Database& db);

// Most jobs visited by one scan, which then takes 2 ms.
inline constexpr int kJobsOfAScan = 1024;

// Part of the jobs that a query accepts.
struct JobScan {
  std::vector<JobPlace> found;  // in the query's order
  int seen = 0;                 // number of visited jobs
  // The last visited place; nullopt at the end of all jobs.
  std::optional<JobPlace> end;
};

// Visits jobs after `after` (nullopt: from the first) in the query's order until it has found
// `limit` or visited kJobsOfAScan. A query with an owner visits only that owner's jobs.
JobScan ScanJobKeys(SQLite::Database& db, const JobQuery& query,
                    const std::optional<JobPlace>& after, int limit);

}  // namespace wan::server
