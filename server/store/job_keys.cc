#include "server/store/job_keys.h"

#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/store/ended_keys.h"
#include "server/store/filter_match.h"
#include "server/store/stored_rows.h"

namespace wan::server {
namespace {

void InsertLabels(SQLite::Database& db, int64_t number, const wan::v1::Job& job) {
  if (job.request().labels().empty()) return;
  SQLite::Statement insert(db, "INSERT INTO job_labels (job, key, value) VALUES (?, ?, ?)");
  for (const auto& [key, value] : job.request().labels()) {
    insert.bind(1, number);
    insert.bind(2, key);
    insert.bind(3, value);
    insert.exec();
    insert.reset();
  }
}

void Execute(SQLite::Database& db, const char* sql, int64_t number) {
  SQLite::Statement statement(db, sql);
  statement.bind(1, number);
  statement.exec();
}

// Returns the index that begins with the common key and continues in the query's order.
std::string IndexFor(const CommonKey& common, JobOrderField order) {
  std::string index = absl::StrCat("job_keys_by_", std::string(common.column));
  switch (order) {
    case JobOrderField::kEndTime:
      return index + "_and_end";
    case JobOrderField::kPriority:
      return index + "_and_priority";
    default:
      return index;
  }
}

}  // namespace

void InsertJobKeys(Statements& db, int64_t number, const wan::v1::Job& job) {
  const Statements::Use insert = db.Get(
      "INSERT INTO job_keys (job, state, model, owner, priority, create_time, "
      "end_time) VALUES (?, ?, ?, ?, ?, ?, ?)");
  insert->bind(1, number);
  insert->bind(2, static_cast<int>(job.state()));
  insert->bind(3, job.request().model());
  insert->bind(4, job.owner());
  insert->bind(5, job.request().priority());
  insert->bind(6, CreateTimeKey(job));
  insert->bind(7, EndTimeKey(job));
  insert->exec();
  InsertLabels(db, number, job);
  NoteEnd(db, number, job);
}

void UpdateJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job, bool labels) {
  SQLite::Statement update(
      db, "UPDATE job_keys SET state = ?, priority = ?, end_time = ? WHERE job = ?");
  update.bind(1, static_cast<int>(job.state()));
  update.bind(2, job.request().priority());
  update.bind(3, EndTimeKey(job));
  update.bind(4, number);
  update.exec();
  NoteEnd(db, number, job);
  if (!labels) return;
  Execute(db, "DELETE FROM job_labels WHERE job = ?", number);
  InsertLabels(db, number, job);
}

void DeleteJobKeys(SQLite::Database& db, int64_t number) {
  Execute(db, "DELETE FROM job_labels WHERE job = ?", number);
  Execute(db, "DELETE FROM job_keys WHERE job = ?", number);
}

void RebuildJobKeys(SQLite::Database& db) {
  db.exec("DELETE FROM job_labels");
  db.exec("DELETE FROM job_keys");
  Statements statements(db);
  SQLite::Statement select(db, "SELECT number, job FROM jobs");
  std::vector<std::pair<int64_t, int64_t>> ends;  // each pair has a job's end_time and number
  while (select.executeStep()) {
    wan::v1::Job job;
    const std::string bytes = select.getColumn(1).getString();
    // Keep a damaged row: the first list that reads the row moves it to damaged_jobs.
    if (!job.ParseFromString(bytes)) job.Clear();
    InsertJobKeys(statements, select.getColumn(0).getInt64(), job);
    if (IsFinal(job.state())) ends.emplace_back(EndTimeKey(job), select.getColumn(0).getInt64());
  }
  // Sort by end time, because the order in which these jobs ended is not stored.
  std::sort(ends.begin(), ends.end());
  SQLite::Statement update(db, "UPDATE job_keys SET ended = ? WHERE job = ?");
  for (size_t i = 0; i < ends.size(); ++i) {
    update.bind(1, static_cast<int64_t>(i) + 1);
    update.bind(2, ends[i].second);
    update.exec();
    update.reset();
  }
}

JobScan ScanJobKeys(SQLite::Database& db, const JobQuery& query,
                    const std::optional<JobPlace>& after, int limit) {
  const std::string column(ColumnOf(query.order.field, "job"));
  const bool by_number = query.order.field == JobOrderField::kCreateTime;
  const std::string direction = query.order.descending ? " DESC" : " ASC";
  const std::string beyond = query.order.descending ? " < " : " > ";
  const std::optional<CommonKey> common = CommonKeyOf(query);

  std::string sql = absl::StrCat("SELECT job, ", column,
                                 ", state, model, owner, priority, create_time, end_time FROM "
                                 "job_keys");
  if (common.has_value()) {
    // Name the index, so that SQLite cannot choose another one.
    absl::StrAppend(&sql, " INDEXED BY ", IndexFor(*common, query.order.field), " WHERE ",
                    std::string(common->column), " = ?");
  } else {
    absl::StrAppend(&sql, " WHERE 1");
  }
  if (after.has_value() && by_number) {
    absl::StrAppend(&sql, " AND job", beyond, "?");
  } else if (after.has_value()) {
    absl::StrAppend(&sql, " AND (", column, ", job)", beyond, "(?, ?)");
  }
  absl::StrAppend(&sql, " ORDER BY ", column, direction);
  if (!by_number) absl::StrAppend(&sql, ", job", direction);
  absl::StrAppend(&sql, " LIMIT ", kJobsOfAScan);

  SQLite::Statement statement(db, sql);
  int bound = 0;
  if (common.has_value()) {
    ++bound;
    if (const auto* const number = std::get_if<int64_t>(&common->value)) {
      statement.bind(bound, *number);
    } else {
      statement.bind(bound, std::string(std::get<std::string_view>(common->value)));
    }
  }
  if (after.has_value() && !by_number) statement.bind(++bound, after->key);
  if (after.has_value()) statement.bind(++bound, after->number);
  SQLite::Statement select_labels(db, "SELECT key, value FROM job_labels WHERE job = ?");
  JobLabels labels;
  int64_t labels_of = 0;  // starts with a number that no job has
  JobScan scan;
  JobKeys keys;
  keys.labels = [&]() -> const JobLabels& {
    if (std::exchange(labels_of, scan.end->number) == scan.end->number) return labels;
    labels.clear();
    select_labels.reset();
    select_labels.bind(1, labels_of);
    while (select_labels.executeStep()) {
      labels[select_labels.getColumn(0).getString()] = select_labels.getColumn(1).getString();
    }
    return labels;
  };
  while (statement.executeStep()) {
    ++scan.seen;
    const JobPlace place{statement.getColumn(1).getInt64(), statement.getColumn(0).getInt64()};
    scan.end = place;
    keys.state = statement.getColumn(2).getInt64();
    keys.model = statement.getColumn(3).getString();
    keys.owner = statement.getColumn(4).getString();
    keys.priority = statement.getColumn(5).getInt64();
    keys.create_time = statement.getColumn(6).getInt64();
    keys.end_time = statement.getColumn(7).getInt64();
    if (!Matches(query.filter, keys)) continue;
    scan.found.push_back(place);
    if (static_cast<int>(scan.found.size()) == limit) return scan;
  }
  if (scan.seen < kJobsOfAScan) scan.end.reset();
  return scan;
}

}  // namespace wan::server
