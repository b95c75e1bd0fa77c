#include "server/store/job_rows.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/store/input_rows.h"
#include "server/store/job_keys.h"

namespace wan::server {
namespace {

// Records the owner of a job whose row was removed.
void NoteOwner(SQLite::Database& db, std::string_view job, const std::string& owner) {
  SQLite::Statement note(db, "INSERT OR REPLACE INTO gone_owners (name, owner) VALUES (?, ?)");
  note.bind(1, std::string(job));
  note.bind(2, owner);
  note.exec();
}

void NoteRemovedUse(SQLite::Database& db, const wan::v1::Job& job) {
  if (!(job.device_seconds() > 0)) return;
  SQLite::Statement note(db,
                         "INSERT INTO removed_use VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
                         "seconds = seconds + excluded.seconds");
  note.bind(1, job.owner());
  note.bind(2, MinuteOf(ToTime(job.end_time())));
  note.bind(3, job.device_seconds());
  note.exec();
  SQLite::Statement forget(
      db, "DELETE FROM removed_use WHERE minute < (SELECT MAX(minute) FROM removed_use) - ?");
  forget.bind(1, kMinutesKept);
  forget.exec();
}

}  // namespace

JobRow ReadRow(SQLite::Statement& select) {
  return {select.getColumn(0).getInt64(),   select.getColumn(1).getString(),
          select.getColumn(2).getInt(),     select.getColumn(3).getString(),
          select.getColumn(4).getString(),  select.getColumn(5).getInt() != 0,
          select.getColumn(6).getInt64(),  // NULL is read as 0
          select.getColumn(7).getInt() != 0};
}

void BindBlob(SQLite::Statement& statement, int index, const std::string& bytes) {
  statement.bind(index, static_cast<const void*>(bytes.data()), static_cast<int>(bytes.size()));
}

absl::StatusOr<int64_t> InsertJobRows(Statements& db, const StoredJob& stored,
                                      const JobInputs& inputs, std::optional<int64_t> number) {
  const wan::v1::Job& job = stored.job;
  const std::string& request_id = job.request().request_id();
  const std::string key = RequestKey(job.owner(), request_id);
  const Statements::Use taken = db.Get(
      "SELECT name FROM jobs WHERE name = ?1 OR request_id = ?2 UNION ALL "
      "SELECT name FROM damaged_jobs WHERE name = ?1 OR request_id = ?2");
  taken->bind(1, job.name());
  if (!request_id.empty()) taken->bind(2, key);
  if (taken->executeStep()) {
    return absl::AlreadyExistsError(absl::StrCat("the name or request_id belongs already to ",
                                                 taken->getColumn(0).getString()));
  }
  const Statements::Use insert = db.Get(
      "INSERT INTO jobs (number, name, state, request_id, request_digest, "
      "tied_to_caller, job, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  if (number.has_value()) insert->bind(1, *number);
  insert->bind(2, job.name());
  insert->bind(3, static_cast<int>(job.state()));
  if (!request_id.empty()) insert->bind(4, key);
  insert->bind(5, stored.request_digest);
  insert->bind(6, stored.tied_to_caller ? 1 : 0);
  BindBlob(*insert, 7, RowOf(job));
  insert->bind(8, job.owner());
  insert->exec();
  const int64_t given = static_cast<SQLite::Database&>(db).getLastInsertRowid();
  InsertJobKeys(db, given, job);
  InsertInputs(db, given, inputs);
  return given;
}

void UpdateJobRow(SQLite::Database& db, int64_t number, const wan::v1::Job& job) {
  SQLite::Statement update(db, "UPDATE jobs SET state = ?, job = ? WHERE number = ?");
  update.bind(1, static_cast<int>(job.state()));
  BindBlob(update, 2, RowOf(job));
  update.bind(3, number);
  update.exec();
  if (IsFinal(job.state())) DeleteInputs(db, number);
}

void ReplaceReport(SQLite::Database& db, int64_t number, const wan::v1::JobReport& report) {
  SQLite::Statement replace(db, "INSERT OR REPLACE INTO reports (job, report) VALUES (?, ?)");
  replace.bind(1, number);
  BindBlob(replace, 2, report.SerializeAsString());
  replace.exec();
}

std::vector<JobRow> ReadUnfinishedRows(SQLite::Database& db, int64_t before, int limit) {
  std::vector<int64_t> numbers;
  SQLite::Statement find(db,
                         "SELECT number FROM jobs WHERE number < ? AND state = ? "
                         "ORDER BY number DESC LIMIT ?");
  for (const wan::v1::JobState state : {wan::v1::JOB_STATE_QUEUED, wan::v1::JOB_STATE_RUNNING}) {
    find.bind(1, before);
    find.bind(2, static_cast<int>(state));
    find.bind(3, limit);
    while (find.executeStep()) numbers.push_back(find.getColumn(0).getInt64());
    find.reset();
  }
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  if (numbers.size() > static_cast<size_t>(limit)) numbers.resize(static_cast<size_t>(limit));
  std::vector<JobRow> rows;
  SQLite::Statement select(db, absl::StrCat(kSelectJob, "WHERE number = ?"));
  for (const int64_t number : numbers) {
    select.bind(1, number);
    if (select.executeStep()) rows.push_back(ReadRow(select));
    select.reset();
  }
  return rows;
}

void TakeBackJob(SQLite::Database& db, const std::string& name) {
  SQLite::Statement find(db, "SELECT number FROM jobs WHERE name = ?");
  find.bind(1, name);
  if (find.executeStep()) DeleteJobRows(db, find.getColumn(0).getInt64());
}

void DeleteJobRows(SQLite::Database& db, int64_t number) {
  DeleteJobKeys(db, number);
  DeleteInputs(db, number);
  for (const char* const rows :
       {"events WHERE job", "reports WHERE job", "job_files WHERE job", "jobs WHERE number"}) {
    SQLite::Statement remove(db, absl::StrCat("DELETE FROM ", rows, " = ?"));
    remove.bind(1, number);
    remove.exec();
  }
}

absl::Status RemoveEndedJob(SQLite::Database& db, std::string_view job) {
  SQLite::Statement find(db, "SELECT number, state, job, owner FROM jobs WHERE name = ?");
  find.bind(1, std::string(job));
  if (!find.executeStep()) return MissingError(db, job);
  const int64_t number = find.getColumn(0).getInt64();
  const std::string owner = find.getColumn(3).getString();
  if (!IsFinal(static_cast<wan::v1::JobState>(find.getColumn(1).getInt()))) {
    return JobNotEndedError(job);
  }
  wan::v1::Job removed;
  if (removed.ParseFromString(find.getColumn(2).getString())) NoteRemovedUse(db, removed);
  DeleteJobRows(db, number);
  NoteRemoved(db, job, owner);
  return absl::OkStatus();
}

void NoteRemoved(SQLite::Database& db, std::string_view job,
                 const std::optional<std::string>& owner) {
  SQLite::Statement note(db, "INSERT OR IGNORE INTO removed_jobs (name) VALUES (?)");
  note.bind(1, std::string(job));
  note.exec();
  const int64_t oldest = db.getLastInsertRowid() - kRemovedNames;
  for (const char* const forgotten :
       {"DELETE FROM gone_owners WHERE name IN (SELECT name FROM removed_jobs WHERE number <= ?)",
        "DELETE FROM removed_jobs WHERE number <= ?"}) {
    SQLite::Statement forget(db, forgotten);
    forget.bind(1, oldest);
    forget.exec();
  }
  if (owner.has_value()) NoteOwner(db, job, *owner);
}

absl::StatusOr<std::string> ReadOwner(SQLite::Database& db, std::string_view job) {
  for (const char* const table : {"jobs", "gone_owners"}) {
    SQLite::Statement select(db, absl::StrCat("SELECT owner FROM ", table, " WHERE name = ?"));
    select.bind(1, std::string(job));
    if (select.executeStep()) return select.getColumn(0).getString();
  }
  return JobNotFoundError(job);
}

std::vector<PrincipalUse> ReadRemovedUse(SQLite::Database& db, absl::Time since) {
  std::vector<PrincipalUse> uses;
  SQLite::Statement select(db, "SELECT owner, minute, seconds FROM removed_use WHERE minute >= ?");
  select.bind(1, MinuteOf(since));
  while (select.executeStep()) {
    uses.push_back({select.getColumn(0).getString(), absl::Seconds(select.getColumn(2).getDouble()),
                    absl::UnixEpoch() + absl::Minutes(select.getColumn(1).getInt64())});
  }
  return uses;
}

void MoveToDamaged(SQLite::Database& db, int64_t number, const std::string& damage) {
  SQLite::Statement copy(db,
                         "INSERT INTO damaged_jobs SELECT number, name, state, request_id, "
                         "request_digest, tied_to_caller, job, ? FROM jobs WHERE number = ?");
  copy.bind(1, damage);
  copy.bind(2, number);
  copy.exec();
  SQLite::Statement find(db, "SELECT name, owner FROM jobs WHERE number = ?");
  find.bind(1, number);
  if (find.executeStep()) {
    NoteOwner(db, find.getColumn(0).getString(), find.getColumn(1).getString());
  }
  DeleteJobKeys(db, number);
  SQLite::Statement remove(db, "DELETE FROM jobs WHERE number = ?");
  remove.bind(1, number);
  remove.exec();
}

absl::Status MissingError(SQLite::Database& db, std::string_view job) {
  SQLite::Statement removed(db, "SELECT 1 FROM removed_jobs WHERE name = ?");
  removed.bind(1, std::string(job));
  return removed.executeStep() ? ExpiredError(job) : JobNotFoundError(job);
}

}  // namespace wan::server
