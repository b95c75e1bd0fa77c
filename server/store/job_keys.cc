#include "server/store/job_keys.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/conversion/convert.h"
#include "server/store/ended_keys.h"

namespace wan::server {
namespace {

constexpr int kJobsAtOnce = 1024;
// The end_time of a job that has not ended: it is the last.
constexpr int64_t kNotEnded = std::numeric_limits<int64_t>::max();

int64_t MicrosOf(const google::protobuf::Timestamp& time) {
  return absl::ToUnixMicros(ToTime(time));
}

int64_t EndOf(const wan::v1::Job& job) {
  return job.has_end_time() ? MicrosOf(job.end_time()) : kNotEnded;
}

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

// SQL, and the values of its parameters in their order.
struct Condition {
  std::string sql;
  std::vector<std::variant<int64_t, std::string>> values;

  void Add(const std::string& text) { sql += text; }
  void Add(const std::string& text, std::variant<int64_t, std::string> value) {
    sql += text;
    values.push_back(std::move(value));
  }
};

std::string_view SymbolOf(FilterOperator op) {
  switch (op) {
    case FilterOperator::kLess:
      return " < ?";
    case FilterOperator::kLessOrEqual:
      return " <= ?";
    case FilterOperator::kGreater:
      return " > ?";
    case FilterOperator::kGreaterOrEqual:
      return " >= ?";
    default:
      return " = ?";
  }
}

void AddComparison(const JobFilter& filter, Condition& condition) {
  const std::string symbol(SymbolOf(filter.op));
  switch (filter.field) {
    case JobField::kState:
      return condition.Add(absl::StrCat("state", symbol), filter.number);
    case JobField::kModel:
      return condition.Add(absl::StrCat("model", symbol), filter.text);
    case JobField::kOwner:
      return condition.Add(absl::StrCat("owner", symbol), filter.text);
    case JobField::kPriority:
      return condition.Add(absl::StrCat("priority", symbol), filter.number);
    case JobField::kCreateTime:
      return condition.Add(absl::StrCat("create_time", symbol), filter.number);
    case JobField::kEndTime:
      condition.Add(absl::StrCat("(end_time", symbol), filter.number);
      return condition.Add(" AND end_time < ?)", kNotEnded);
    case JobField::kLabel:
      condition.Add(
          "EXISTS (SELECT 1 FROM job_labels WHERE job_labels.job = job_keys.job AND key = ?",
          filter.label);
      if (filter.op != FilterOperator::kHas) condition.Add(" AND value = ?", filter.text);
      return condition.Add(")");
  }
}

void AddFilter(const JobFilter& filter, Condition& condition) {
  switch (filter.kind) {
    case JobFilter::Kind::kAll:
      return condition.Add("1");
    case JobFilter::Kind::kNot:
      condition.Add("NOT (");
      AddFilter(filter.operands.front(), condition);
      return condition.Add(")");
    case JobFilter::Kind::kAnd:
    case JobFilter::Kind::kOr: {
      std::string_view between = "(";
      for (const JobFilter& operand : filter.operands) {
        condition.Add(std::string(between));
        AddFilter(operand, condition);
        between = filter.kind == JobFilter::Kind::kAnd ? " AND " : " OR ";
      }
      return condition.Add(")");
    }
    case JobFilter::Kind::kCompare:
      return AddComparison(filter, condition);
  }
}

// An equality that every accepted job has and that has an index in the order of acceptance; null if
// there is none. The rarest comes first.
const JobFilter* IndexedEquality(const JobFilter& filter) {
  const std::vector<JobFilter> alone = {};
  const auto* const operands = filter.kind == JobFilter::Kind::kAnd ? &filter.operands : &alone;
  for (const JobField field : {JobField::kOwner, JobField::kState, JobField::kModel}) {
    const auto is_it = [field](const JobFilter& candidate) {
      return candidate.kind == JobFilter::Kind::kCompare && candidate.field == field &&
             candidate.op == FilterOperator::kEqual;
    };
    if (is_it(filter)) return &filter;
    for (const JobFilter& operand : *operands) {
      if (is_it(operand)) return &operand;
    }
  }
  return nullptr;
}

std::string_view ColumnOf(JobOrderField field) {
  switch (field) {
    case JobOrderField::kEndTime:
      return "end_time";
    case JobOrderField::kPriority:
      return "priority";
    default:
      return "job";  // jobs are numbered as they are accepted
  }
}

}  // namespace

void InsertJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job) {
  SQLite::Statement insert(db,
                           "INSERT INTO job_keys (job, state, model, owner, priority, create_time, "
                           "end_time) VALUES (?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, number);
  insert.bind(2, static_cast<int>(job.state()));
  insert.bind(3, job.request().model());
  insert.bind(4, job.owner());
  insert.bind(5, job.request().priority());
  insert.bind(6, MicrosOf(job.create_time()));
  insert.bind(7, EndOf(job));
  insert.exec();
  InsertLabels(db, number, job);
  NoteEnd(db, number, job);
}

void UpdateJobKeys(SQLite::Database& db, int64_t number, const wan::v1::Job& job, bool labels) {
  SQLite::Statement update(
      db, "UPDATE job_keys SET state = ?, priority = ?, end_time = ? WHERE job = ?");
  update.bind(1, static_cast<int>(job.state()));
  update.bind(2, job.request().priority());
  update.bind(3, EndOf(job));
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
  SQLite::Statement select(db, "SELECT number, job FROM jobs");
  std::vector<std::pair<int64_t, int64_t>> ends;  // end_time and number
  while (select.executeStep()) {
    wan::v1::Job job;
    const std::string bytes = select.getColumn(1).getString();
    // One that cannot be read is set aside by the list that comes upon it.
    if (!job.ParseFromString(bytes)) job.Clear();
    InsertJobKeys(db, select.getColumn(0).getInt64(), job);
    if (IsFinal(job.state())) ends.emplace_back(EndOf(job), select.getColumn(0).getInt64());
  }
  // The order of their ends is no longer known, but for their times.
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
  const std::string column(ColumnOf(query.order.field));
  const bool by_number = query.order.field == JobOrderField::kCreateTime;
  const std::string direction = query.order.descending ? " DESC" : " ASC";
  const std::string beyond = query.order.descending ? " < " : " > ";

  Condition select;
  select.Add(absl::StrCat("SELECT job, ", column, ", ("));
  AddFilter(query.filter, select);
  select.Add(") FROM job_keys WHERE 1");
  const JobFilter* const indexed = by_number ? IndexedEquality(query.filter) : nullptr;
  if (indexed != nullptr) {
    select.Add(" AND ");
    AddComparison(*indexed, select);
  }
  if (after.has_value() && by_number) {
    select.Add(absl::StrCat(" AND job", beyond, "?"), after->number);
  } else if (after.has_value()) {
    select.Add(absl::StrCat(" AND (", column, ", job)", beyond, "(?"), after->key);
    select.Add(", ?)", after->number);
  }
  select.Add(absl::StrCat(" ORDER BY ", column, direction));
  if (!by_number) select.Add(absl::StrCat(", job", direction));
  select.Add(absl::StrCat(" LIMIT ", kJobsAtOnce));

  SQLite::Statement statement(db, select.sql);
  for (size_t i = 0; i < select.values.size(); ++i) {
    std::visit([&](const auto& value) { statement.bind(static_cast<int>(i) + 1, value); },
               select.values[i]);
  }
  JobScan scan;
  int seen = 0;
  while (statement.executeStep()) {
    ++seen;
    const JobPlace place{statement.getColumn(1).getInt64(), statement.getColumn(0).getInt64()};
    scan.end = place;
    if (statement.getColumn(2).getInt() == 0) continue;
    scan.found.push_back(place);
    if (static_cast<int>(scan.found.size()) == limit) return scan;
  }
  if (seen < kJobsAtOnce) scan.end.reset();
  return scan;
}

}  // namespace wan::server
