// Reads and writes the rows of jobs in PostgreSQL.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/conversion/job_inputs.h"
#include "server/postgres/connection.h"
#include "server/store/job_store.h"
#include "server/store/stored_rows.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Call the functions that write inside a transaction. Errors of the connection stay in it; what a
// function returns means nothing then.

// A job's row, and what is wrong with it if somebody has found that out; otherwise empty.
struct FoundRow {
  JobRow row;
  std::string damage;
};

// Returns the job of this name, or with this RequestKey; nullopt if there is none.
std::optional<FoundRow> FindRow(Connection& connection, std::string_view name);
std::optional<FoundRow> FindRowByRequest(Connection& connection, std::string_view request_key);
// Returns the number of a sound job; nullopt if there is none.
std::optional<int64_t> NumberOf(Connection& connection, std::string_view name);
// Returns NOT_FOUND (EXPIRED or JOB_NOT_FOUND) for a job that is not there.
absl::Status MissingRowError(Connection& connection, std::string_view name);

// Adds a job with its files, but without events, and returns its number. Fails with ALREADY_EXISTS
// if its name or request_id is taken.
absl::StatusOr<int64_t> InsertRow(Connection& connection, const StoredJob& stored,
                                  const JobInputs& inputs);
// Replaces the job's row. Drops the job's input files if the new state is final.
void UpdateRow(Connection& connection, int64_t number, const wan::v1::Job& job);
// Counts what an ended job takes; does nothing for other jobs. Call it after the job's rows are
// written.
void CountEnd(Connection& connection, int64_t number, const wan::v1::Job& job);
// Deletes an ended job and all its rows, and records its name and device seconds. Fails with
// NOT_FOUND, or with FAILED_PRECONDITION (JOB_NOT_ENDED).
absl::Status RemoveRow(Connection& connection, std::string_view name);
// Deletes a job that was just added, if it is there, without recording its removal.
void TakeBackRow(Connection& connection, std::string_view name);
// Notes that the row cannot be read; from then on only FindRow returns it.
void NoteDamage(Connection& connection, int64_t number, const std::string& damage);

// Returns the sound rows with these numbers, in the order of the numbers.
std::vector<JobRow> RowsOf(Connection& connection, std::span<const int64_t> numbers);
// Returns at most `limit` rows of QUEUED and RUNNING jobs with a number above `after`, the oldest
// first.
std::vector<JobRow> UnfinishedRows(Connection& connection, int64_t after, int limit);

void ReplaceReportRow(Connection& connection, int64_t number, const wan::v1::JobReport& report);
void ReplaceFileRows(Connection& connection, int64_t number, std::span<const JobFile> files);
std::vector<JobFile> FileRows(Connection& connection, std::string_view job);
JobInputs InputRows(Connection& connection, std::string_view job);

std::map<wan::v1::JobState, EndedTotals> TotalsRows(Connection& connection,
                                                    const std::optional<std::string>& owner);
std::vector<EndedJob> OldestRows(Connection& connection, const EndedQuery& query);
// Returns the device time of removed jobs that ended in the minute of `since` or later.
std::vector<PrincipalUse> RemovedUseRows(Connection& connection, absl::Time since);

}  // namespace wan::server
