#include "server/store/ended_keys.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/store/stored_rows.h"

namespace wan::server {

void NoteEnd(SQLite::Database& db, int64_t number, const wan::v1::Job& job) {
  if (!IsFinal(job.state())) return;
  SQLite::Statement update(
      db,
      "UPDATE job_keys SET ended = CASE WHEN ended > 0 THEN ended ELSE 1 + IFNULL((SELECT "
      "MAX(ended) FROM job_keys WHERE state = ?2 AND ended > 0), 0) END, file_bytes = ?3, "
      "entry_bytes = (SELECT LENGTH(job) FROM jobs WHERE number = ?1) + "
      "IFNULL((SELECT SUM(LENGTH(event)) FROM events WHERE job = ?1), 0) + "
      "IFNULL((SELECT LENGTH(report) FROM reports WHERE job = ?1), 0) WHERE job = ?1");
  update.bind(1, number);
  update.bind(2, static_cast<int>(job.state()));
  update.bind(3, FileBytesOf(job));
  update.exec();
}

std::map<wan::v1::JobState, EndedTotals> ReadEndedTotals(SQLite::Database& db,
                                                         const std::optional<std::string>& owner) {
  SQLite::Statement select(
      db, absl::StrCat("SELECT state, SUM(jobs), SUM(jobs_with_files), SUM(file_bytes), "
                       "SUM(entry_bytes) FROM ended_totals ",
                       owner.has_value() ? "WHERE owner = ? " : "", "GROUP BY state"));
  if (owner.has_value()) select.bind(1, *owner);
  std::map<wan::v1::JobState, EndedTotals> totals;
  while (select.executeStep()) {
    totals[static_cast<wan::v1::JobState>(select.getColumn(0).getInt())] = {
        select.getColumn(1).getInt64(), select.getColumn(2).getInt64(),
        select.getColumn(3).getInt64(), select.getColumn(4).getInt64()};
  }
  return totals;
}

std::vector<EndedJob> ReadOldestEnded(SQLite::Database& db, const EndedQuery& query) {
  std::string sql =
      "SELECT jobs.name, file_bytes, entry_bytes FROM job_keys JOIN jobs ON number = job_keys.job "
      "WHERE job_keys.state = ?1 AND ended > 0";
  if (query.with_files) absl::StrAppend(&sql, " AND file_bytes > 0");
  if (query.ended_before.has_value()) {
    absl::StrAppend(&sql, " AND end_time < ?2 ORDER BY end_time");
  } else {
    absl::StrAppend(&sql, " ORDER BY ended");
  }
  absl::StrAppend(&sql, " LIMIT ?3 OFFSET ?4");
  SQLite::Statement select(db, sql);
  select.bind(1, static_cast<int>(query.state));
  if (query.ended_before.has_value()) select.bind(2, absl::ToUnixMicros(*query.ended_before));
  select.bind(3, query.limit);
  select.bind(4, query.skip);
  std::vector<EndedJob> jobs;
  while (select.executeStep()) {
    jobs.push_back({select.getColumn(0).getString(), select.getColumn(1).getInt64(),
                    select.getColumn(2).getInt64()});
  }
  return jobs;
}

}  // namespace wan::server
