#include "server/postgres/job_scan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/postgres/postgres_rows.h"
#include "server/store/filter_match.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {
namespace {

// Rows that are read at once, before the page's bytes are counted again.
constexpr size_t kRowsOfARead = 16;

// Texts of PostgreSQL contain no NUL, so nothing equals a text that does.
bool EqualsNothing(const CommonKey& common) {
  const auto* const text = std::get_if<std::string_view>(&common.value);
  return text != nullptr && text->find('\0') != std::string_view::npos;
}

// $1 and $2 are the place after which the scan begins, $3 is the value of the common key.
//
// The columns of ORDER BY and of the row comparison are those of the index, from its first one on,
// and the common key is written as two bounds. With "owner = $3 ORDER BY number" the planner may
// read the index of the numbers, and with it the jobs of everybody, when it expects to find the
// owner's soon.
std::string SqlOf(const JobQuery& query, const std::optional<CommonKey>& common) {
  const std::string column(ColumnOf(query.order.field, "number"));
  const std::string direction = query.order.descending ? " DESC" : " ASC";
  const std::string beyond = query.order.descending ? " < " : " > ";
  std::vector<std::string> columns;
  std::vector<std::string> values;
  if (common.has_value()) {
    columns.emplace_back(common->column);
    values.emplace_back("$3");
  }
  if (column != "number") {
    columns.push_back(column);
    values.emplace_back("$1");
  }
  columns.emplace_back("number");
  values.emplace_back("$2");
  std::string sql = absl::StrCat(
      "SELECT number, ", column,
      ", state, model, owner, priority, create_time, end_time, labels FROM jobs WHERE (",
      absl::StrJoin(columns, ", "), ")", beyond, "(", absl::StrJoin(values, ", "),
      ") AND damage IS NULL");
  if (common.has_value()) {
    absl::StrAppend(&sql, " AND ", columns.front(), query.order.descending ? " >= $3" : " <= $3");
  }
  absl::StrAppend(&sql, " ORDER BY ", absl::StrJoin(columns, direction + ", "), direction,
                  " LIMIT ", kJobsOfAScan);
  return sql;
}

// The place before all jobs of the query's order.
JobPlace Start(const JobQuery& query) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return query.order.descending ? JobPlace{kMost, kMost} : JobPlace{kLeast, kLeast};
}

Rows RunScan(Connection& connection, const JobQuery& query, const std::optional<JobPlace>& after) {
  const std::optional<CommonKey> common = CommonKeyOf(query);
  if (common.has_value() && EqualsNothing(*common)) return {};
  JobPlace from = after.value_or(Start(query));
  if (query.order.field == JobOrderField::kCreateTime) from.key = from.number;
  const std::string sql = SqlOf(query, common);
  if (!common.has_value()) return connection.Run(sql, {from.key, from.number});
  const PgValue value = std::visit([](const auto& key) { return PgValue(key); }, common->value);
  return connection.Run(sql, {from.key, from.number, value});
}

JobLabels ParseLabels(const std::string& bytes) {
  wan::v1::GenerationRequest labels;
  if (!labels.ParseFromString(bytes)) return {};
  return {labels.labels().begin(), labels.labels().end()};
}

void FindMatches(const Rows& rows, const JobFilter& filter, int limit, JobScan& scan) {
  JobLabels labels;
  JobKeys keys;
  for (int row = 0; row < rows.size(); ++row) {
    ++scan.seen;
    const JobPlace place{rows.Int(row, 1), rows.Int(row, 0)};
    scan.end = place;
    keys.state = rows.Int(row, 2);
    keys.model = rows.Text(row, 3);
    keys.owner = rows.Text(row, 4);
    keys.priority = rows.Int(row, 5);
    keys.create_time = rows.Int(row, 6);
    keys.end_time = rows.Int(row, 7);
    keys.labels = [&]() -> const JobLabels& { return labels = ParseLabels(rows.Text(row, 8)); };
    if (!Matches(filter, keys)) continue;
    scan.found.push_back(place);
    if (static_cast<int>(scan.found.size()) == limit) return;
  }
  if (scan.seen < kJobsOfAScan) scan.end.reset();
}

}  // namespace

std::vector<JobRow> ScanRows(Connection& connection, const JobQuery& query,
                             const std::optional<JobPlace>& after, int limit, size_t bytes,
                             JobScan& scan) {
  scan = {};
  FindMatches(RunScan(connection, query, after), query.filter, limit, scan);
  std::vector<JobRow> rows;
  size_t read = 0;
  for (size_t begin = 0; begin < scan.found.size(); begin += kRowsOfARead) {
    const size_t end = std::min(scan.found.size(), begin + kRowsOfARead);
    std::vector<int64_t> numbers;
    for (size_t i = begin; i < end; ++i) numbers.push_back(scan.found[i].number);
    for (JobRow& row : RowsOf(connection, numbers)) {
      read += row.job.size();
      const int64_t number = row.number;
      rows.push_back(std::move(row));
      if (read < bytes) continue;
      const auto place =
          std::find_if(scan.found.begin(), scan.found.end(),
                       [&](const JobPlace& found) { return found.number == number; });
      if (*place != scan.found.back()) scan.end = *place;
      return rows;
    }
  }
  return rows;
}

}  // namespace wan::server
