#include "server/postgres/postgres_rows.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// A SELECT whose result ToRow can read; append the WHERE clause.
constexpr char kSelect[] =
    "SELECT number, name, state, job, request_digest, tied_to_caller, "
    "(SELECT last FROM events WHERE events.job = number ORDER BY first DESC LIMIT 1), "
    "EXISTS (SELECT 1 FROM events WHERE events.job = number AND first = 1), damage FROM jobs ";

// The field of the request that has the image, in the table inputs.
constexpr std::string_view kImageInput = "image";

JobRow ToRow(const Rows& rows, int row) {
  return {rows.Int(row, 0),  rows.Text(row, 1), static_cast<int>(rows.Int(row, 2)),
          rows.Text(row, 3), rows.Text(row, 4), rows.Bool(row, 5),
          rows.Int(row, 6),  rows.Bool(row, 7)};
}

std::optional<FoundRow> Found(const Rows& rows) {
  if (rows.empty()) return std::nullopt;
  return FoundRow{ToRow(rows, 0), rows.Text(0, 8)};
}

std::string LabelsOf(const wan::v1::Job& job) {
  wan::v1::GenerationRequest labels;
  *labels.mutable_labels() = job.request().labels();
  return labels.SerializeAsString();
}

void InsertInput(Connection& connection, int64_t number, std::string_view field,
                 const JobInputs::File& file) {
  if (file == nullptr) return;
  connection.Run("INSERT INTO inputs (job, field, content) VALUES ($1, $2, $3)",
                 {number, field, Bytes{*file}});
}

void NoteUse(Connection& connection, const wan::v1::Job& job) {
  if (!(job.device_seconds() > 0)) return;
  connection.Run(
      "INSERT INTO removed_use AS u (owner, minute, seconds) VALUES ($1, $2, $3) "
      "ON CONFLICT (owner, minute) DO UPDATE SET seconds = u.seconds + excluded.seconds",
      {std::string_view(job.owner()), MinuteOf(ToTime(job.end_time())), job.device_seconds()});
  connection.Run(
      "DELETE FROM removed_use WHERE minute < (SELECT MAX(minute) FROM removed_use) - $1",
      {kMinutesKept});
}

void NoteRemovedName(Connection& connection, std::string_view name, std::string_view owner) {
  const Rows noted = connection.Run(
      "INSERT INTO removed_jobs (name, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING "
      "RETURNING number",
      {name, owner});
  connection.Run("DELETE FROM removed_jobs WHERE number <= $1", {noted.Int(0, 0) - kRemovedNames});
}

void DeleteRow(Connection& connection, int64_t number) {
  for (const char* const table : {"events", "reports", "inputs", "job_files"}) {
    connection.Run(absl::StrCat("DELETE FROM ", table, " WHERE job = $1"), {number});
  }
  connection.Run("DELETE FROM jobs WHERE number = $1", {number});
}

}  // namespace

std::optional<FoundRow> FindRow(Connection& connection, std::string_view name) {
  return Found(connection.Run(absl::StrCat(kSelect, "WHERE name = $1"), {name}));
}

std::optional<FoundRow> FindRowByRequest(Connection& connection, std::string_view request_key) {
  return Found(
      connection.Run(absl::StrCat(kSelect, "WHERE request_key = $1"), {Bytes{request_key}}));
}

std::optional<int64_t> NumberOf(Connection& connection, std::string_view name) {
  const Rows found =
      connection.Run("SELECT number FROM jobs WHERE name = $1 AND damage IS NULL", {name});
  if (found.empty()) return std::nullopt;
  return found.Int(0, 0);
}

absl::Status MissingRowError(Connection& connection, std::string_view name) {
  const bool removed =
      !connection.Run("SELECT 1 FROM removed_jobs WHERE name = $1", {name}).empty();
  return removed ? ExpiredError(name) : JobNotFoundError(name);
}

absl::StatusOr<int64_t> InsertRow(Connection& connection, const StoredJob& stored,
                                  const JobInputs& inputs) {
  const wan::v1::Job& job = stored.job;
  const std::string key = RequestKey(job.owner(), job.request().request_id());
  const bool has_key = !job.request().request_id().empty();
  const std::string row = RowOf(job);
  const std::string labels = LabelsOf(job);
  const Rows inserted = connection.Run(
      "INSERT INTO jobs (name, owner, request_key, request_digest, tied_to_caller, state, model, "
      "priority, create_time, end_time, labels, job) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) "
      "ON CONFLICT DO NOTHING RETURNING number",
      {std::string_view(job.name()), std::string_view(job.owner()),
       has_key ? PgValue(Bytes{key}) : PgValue(), std::string_view(stored.request_digest),
       stored.tied_to_caller, static_cast<int64_t>(job.state()),
       std::string_view(job.request().model()), int64_t{job.request().priority()},
       CreateTimeKey(job), EndTimeKey(job), Bytes{labels}, Bytes{row}});
  if (inserted.empty()) {
    const Rows taken =
        connection.Run("SELECT name FROM jobs WHERE name = $1 OR request_key = $2",
                       {std::string_view(job.name()), has_key ? PgValue(Bytes{key}) : PgValue()});
    return absl::AlreadyExistsError(
        absl::StrCat("the name or request_id belongs already to ", taken.Text(0, 0)));
  }
  const int64_t number = inserted.Int(0, 0);
  InsertInput(connection, number, kImageInput, inputs.image);
  for (const auto& [field, member] : kLatentsInputs) {
    if (!inputs.artifacts.contains(field)) {
      InsertInput(connection, number, field, inputs.*member);
    }
  }
  CountEnd(connection, number, job);
  return number;
}

void UpdateRow(Connection& connection, int64_t number, const wan::v1::Job& job) {
  const std::string row = RowOf(job);
  const std::string labels = LabelsOf(job);
  connection.Run(
      "UPDATE jobs SET state = $2, priority = $3, end_time = $4, labels = $5, job = $6 "
      "WHERE number = $1",
      {number, static_cast<int64_t>(job.state()), int64_t{job.request().priority()},
       EndTimeKey(job), Bytes{labels}, Bytes{row}});
  if (IsFinal(job.state())) connection.Run("DELETE FROM inputs WHERE job = $1", {number});
}

void CountEnd(Connection& connection, int64_t number, const wan::v1::Job& job) {
  if (!IsFinal(job.state())) return;
  connection.Run(
      "UPDATE jobs SET ended = CASE WHEN ended > 0 THEN ended ELSE nextval('wanserve.ends') END, "
      "file_bytes = $2, entry_bytes = length(job) + "
      "COALESCE((SELECT SUM(length(events)) FROM events WHERE job = $1), 0) + "
      "COALESCE((SELECT length(report) FROM reports WHERE job = $1), 0) WHERE number = $1",
      {number, FileBytesOf(job)});
}

absl::Status RemoveRow(Connection& connection, std::string_view name) {
  const Rows found = connection.Run(
      "SELECT number, state, job, owner FROM jobs WHERE name = $1 AND damage IS NULL", {name});
  if (found.empty()) return MissingRowError(connection, name);
  if (!IsFinal(static_cast<wan::v1::JobState>(found.Int(0, 1)))) return JobNotEndedError(name);
  wan::v1::Job removed;
  if (removed.ParseFromString(found.Text(0, 2))) NoteUse(connection, removed);
  DeleteRow(connection, found.Int(0, 0));
  NoteRemovedName(connection, name, found.Text(0, 3));
  return absl::OkStatus();
}

void TakeBackRow(Connection& connection, std::string_view name) {
  const std::optional<int64_t> number = NumberOf(connection, name);
  if (number.has_value()) DeleteRow(connection, *number);
}

void NoteDamage(Connection& connection, int64_t number, const std::string& damage) {
  connection.Run("UPDATE jobs SET damage = $2 WHERE number = $1",
                 {number, std::string_view(damage)});
}

std::vector<JobRow> RowsOf(Connection& connection, std::span<const int64_t> numbers) {
  const std::string list = absl::StrCat("{", absl::StrJoin(numbers, ","), "}");
  const Rows found = connection.Run(
      absl::StrCat(kSelect, "WHERE number = ANY ($1::text::bigint[]) AND damage IS NULL"),
      {std::string_view(list)});
  std::map<int64_t, int> row_of;
  for (int row = 0; row < found.size(); ++row) row_of[found.Int(row, 0)] = row;
  std::vector<JobRow> rows;
  for (const int64_t number : numbers) {
    const auto row = row_of.find(number);
    if (row != row_of.end()) rows.push_back(ToRow(found, row->second));
  }
  return rows;
}

std::vector<JobRow> UnfinishedRows(Connection& connection, int64_t after, int limit) {
  static_assert(wan::v1::JOB_STATE_QUEUED == 1 && wan::v1::JOB_STATE_RUNNING == 2);
  // The index of the states has each state's jobs in the order of their numbers.
  const auto of_state = [](int state) {
    return absl::StrCat("(", kSelect, "WHERE state = ", state,
                        " AND damage IS NULL AND number > $1 ORDER BY number LIMIT $2)");
  };
  const Rows found = connection.Run(
      absl::StrCat(of_state(1), " UNION ALL ", of_state(2), " ORDER BY number LIMIT $2"),
      {after, int64_t{limit}});
  std::vector<JobRow> rows;
  for (int row = 0; row < found.size(); ++row) rows.push_back(ToRow(found, row));
  return rows;
}

void ReplaceReportRow(Connection& connection, int64_t number, const wan::v1::JobReport& report) {
  const std::string bytes = report.SerializeAsString();
  connection.Run(
      "INSERT INTO reports (job, report) VALUES ($1, $2) "
      "ON CONFLICT (job) DO UPDATE SET report = excluded.report",
      {number, Bytes{bytes}});
}

void ReplaceFileRows(Connection& connection, int64_t number, std::span<const JobFile> files) {
  connection.Run("DELETE FROM job_files WHERE job = $1", {number});
  for (const JobFile& file : files) {
    connection.Run(
        "INSERT INTO job_files (job, name, size_bytes, digest_key, sha256) "
        "VALUES ($1, $2, $3, $4, $5)",
        {number, Bytes{file.name}, static_cast<int64_t>(file.size_bytes), Bytes{file.digest_key},
         Bytes{file.sha256}});
  }
}

std::vector<JobFile> FileRows(Connection& connection, std::string_view job) {
  const Rows found = connection.Run(
      "SELECT f.name, size_bytes, digest_key, sha256 FROM job_files f JOIN jobs ON number = f.job "
      "WHERE jobs.name = $1 ORDER BY f.name",
      {job});
  std::vector<JobFile> files;
  for (int row = 0; row < found.size(); ++row) {
    files.push_back({found.Text(row, 0), static_cast<uint64_t>(found.Int(row, 1)),
                     found.Text(row, 2), found.Text(row, 3)});
  }
  return files;
}

JobInputs InputRows(Connection& connection, std::string_view job) {
  const Rows found = connection.Run(
      "SELECT field, content FROM inputs JOIN jobs ON number = inputs.job WHERE name = $1", {job});
  JobInputs inputs;
  for (int row = 0; row < found.size(); ++row) {
    const std::string name = found.Text(row, 0);
    auto content = std::make_shared<const std::string>(found.Text(row, 1));
    if (name == kImageInput) inputs.image = content;
    for (const auto& [field, member] : kLatentsInputs) {
      if (field == name) inputs.*member = content;
    }
  }
  return inputs;
}

std::map<wan::v1::JobState, EndedTotals> TotalsRows(Connection& connection,
                                                    const std::optional<std::string>& owner) {
  constexpr std::string_view kSums =
      "SELECT state, SUM(jobs)::bigint, SUM(jobs_with_files)::bigint, SUM(file_bytes)::bigint, "
      "SUM(entry_bytes)::bigint FROM ended_totals ";
  const Rows found =
      owner.has_value()
          ? connection.Run(absl::StrCat(std::string(kSums), "WHERE owner = $1 GROUP BY state"),
                           {std::string_view(*owner)})
          : connection.Run(absl::StrCat(std::string(kSums), "GROUP BY state"));
  std::map<wan::v1::JobState, EndedTotals> totals;
  for (int row = 0; row < found.size(); ++row) {
    totals[static_cast<wan::v1::JobState>(found.Int(row, 0))] = {
        found.Int(row, 1), found.Int(row, 2), found.Int(row, 3), found.Int(row, 4)};
  }
  return totals;
}

std::vector<EndedJob> OldestRows(Connection& connection, const EndedQuery& query) {
  std::string sql =
      "SELECT name, file_bytes, entry_bytes FROM jobs WHERE ended > 0 AND damage IS NULL";
  if (query.with_files) absl::StrAppend(&sql, " AND file_bytes > 0");
  // As in SqlOf of job_scan.cc, so that jobs of other states are not read.
  absl::StrAppend(&sql, query.ended_before.has_value()
                            ? " AND state >= $1 AND (state, end_time) < ($1, $4) "
                              "ORDER BY state, end_time"
                            : " AND state = $1 ORDER BY ended");
  absl::StrAppend(&sql, " LIMIT $2 OFFSET $3");
  const PgValue state = static_cast<int64_t>(query.state);
  const PgValue limit = int64_t{query.limit};
  const PgValue skip = int64_t{query.skip};
  const Rows found =
      query.ended_before.has_value()
          ? connection.Run(sql, {state, limit, skip, absl::ToUnixMicros(*query.ended_before)})
          : connection.Run(sql, {state, limit, skip});
  std::vector<EndedJob> jobs;
  for (int row = 0; row < found.size(); ++row) {
    jobs.push_back({found.Text(row, 0), found.Int(row, 1), found.Int(row, 2)});
  }
  return jobs;
}

std::vector<PrincipalUse> RemovedUseRows(Connection& connection, absl::Time since) {
  const Rows found = connection.Run(
      "SELECT owner, minute, seconds FROM removed_use WHERE minute >= $1", {MinuteOf(since)});
  std::vector<PrincipalUse> uses;
  for (int row = 0; row < found.size(); ++row) {
    uses.push_back({found.Text(row, 0), absl::Seconds(found.Double(row, 2)),
                    absl::UnixEpoch() + absl::Minutes(found.Int(row, 1))});
  }
  return uses;
}

}  // namespace wan::server
