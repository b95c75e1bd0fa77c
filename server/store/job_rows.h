// Reads, writes and checks the rows of one job.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/conversion/job_inputs.h"
#include "server/store/job_store.h"
#include "server/store/statements.h"
#include "server/store/stored_rows.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Call all functions of this file with the connection's lock held, and those that write inside a
// transaction. The functions throw the exceptions of SQLite.

// A SELECT whose result ReadRow can read; append the WHERE clause.
inline constexpr char kSelectJob[] =
    "SELECT number, name, state, job, request_digest, tied_to_caller, "
    "(SELECT MAX(sequence) FROM events WHERE events.job = jobs.number), "
    "EXISTS (SELECT 1 FROM events WHERE events.job = jobs.number AND sequence = 1) FROM jobs ";

// Returns the current row of the statement.
JobRow ReadRow(SQLite::Statement& select);

void BindBlob(SQLite::Statement& statement, int index, const std::string& bytes);

// Adds a job with its files, but without events, and returns its number: `number`, or the next one.
// Fails with ALREADY_EXISTS if the job's name or request_id is taken.
absl::StatusOr<int64_t> InsertJobRows(Statements& db, const StoredJob& stored,
                                      const JobInputs& inputs,
                                      std::optional<int64_t> number = std::nullopt);

// Replaces the job's row. Drops the job's input files if the new state is final.
void UpdateJobRow(SQLite::Database& db, int64_t number, const wan::v1::Job& job);

void ReplaceReport(SQLite::Database& db, int64_t number, const wan::v1::JobReport& report);

// Returns at most `limit` rows of QUEUED and RUNNING jobs with a number below `before`, the newest
// first. The work is bounded by `limit`, because each state has an index in this order.
std::vector<JobRow> ReadUnfinishedRows(SQLite::Database& db, int64_t before, int limit);

// Deletes a job that was just added, without recording its removal; does nothing if the job does
// not exist.
void TakeBackJob(SQLite::Database& db, const std::string& name);

// Deletes a job and all that belongs to it.
void DeleteJobRows(SQLite::Database& db, int64_t number);

// Deletes an ended job and all its rows, and records its name and device seconds. Fails with
// NOT_FOUND, or with FAILED_PRECONDITION (JOB_NOT_ENDED).
absl::Status RemoveEndedJob(SQLite::Database& db, std::string_view job);

// Returns the device time of removed jobs that ended in the minute of `since` or later.
std::vector<PrincipalUse> ReadRemovedUse(SQLite::Database& db, absl::Time since);

// Records the name of a removed job; if there are more than 100,000 names, removes the oldest.
// `owner` is nullopt if nobody knows the owner.
void NoteRemoved(SQLite::Database& db, std::string_view job,
                 const std::optional<std::string>& owner);

// Returns the owner of a job, even if its row is damaged or was removed. Fails with NOT_FOUND if
// the job is unknown.
absl::StatusOr<std::string> ReadOwner(SQLite::Database& db, std::string_view job);

// Moves a row to the table damaged_jobs with a note of what is wrong.
void MoveToDamaged(SQLite::Database& db, int64_t number, const std::string& damage);

// Returns the error for a job that is neither in `jobs` nor in damaged_jobs: NOT_FOUND (EXPIRED or
// JOB_NOT_FOUND).
absl::Status MissingError(SQLite::Database& db, std::string_view job);

}  // namespace wan::server
