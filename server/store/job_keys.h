// By what jobs are listed: a small row and the labels of each, beside its bytes, in the tables
// job_keys and job_labels.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// For the thread that holds the connection's lock, in a transaction of its own. They throw what
// SQLite throws.

// Adds the keys of a job that has none. If it has ended, its rows must be written.
void InsertJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job);
// Makes the keys those of `job`, whose rows must be written; its labels too if `labels`.
void UpdateJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job, bool labels);
void DeleteJobKeys(SQLite::Database& db, int64_t number);
// Makes the keys of all jobs anew, from their rows. For migrations and repairs: it takes as long as
// there are jobs.
void RebuildJobKeys(SQLite::Database& db);

// Most jobs that a scan looks at: 2 ms.
inline constexpr int kJobsOfAScan = 1024;

// Jobs that a query accepts.
struct JobScan {
  std::vector<JobPlace> found;  // in the query's order
  int seen = 0;                 // how many jobs it looked at
  // How far it looked; nothing at the end of all jobs.
  std::optional<JobPlace> end;
};

// Looks at jobs after `after` (nothing: from the first) in the query's order until it has found
// `limit` of them, or has looked at kJobsOfAScan. A query with an owner looks at no other's jobs.
JobScan ScanJobKeys(SQLite::Database& db, const JobQuery& query,
                    const std::optional<JobPlace>& after, int limit);

}  // namespace wan::server
