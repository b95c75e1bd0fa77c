#include "server/store/event_rows.h"

#include "server/store/job_rows.h"

namespace wan::server {

void InsertEventRows(Statements& db, int64_t number, std::span<const wan::v1::Event> events,
                     std::optional<int64_t> replaced) {
  if (replaced.has_value()) {
    SQLite::Statement remove(db, "DELETE FROM events WHERE job = ? AND sequence >= ?");
    remove.bind(1, number);
    remove.bind(2, *replaced);
    remove.exec();
  }
  const Statements::Use insert =
      db.Get("INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)");
  for (const wan::v1::Event& event : events) {
    insert->bind(1, number);
    insert->bind(2, event.sequence());
    BindBlob(*insert, 3, event.SerializeAsString());
    insert->exec();
    insert->reset();
  }
}

std::vector<EventRow> ReadEventRows(SQLite::Database& db, std::string_view job, int64_t after,
                                    int limit) {
  SQLite::Statement select(
      db,
      "SELECT sequence, event FROM events WHERE job = (SELECT number FROM jobs WHERE name = ?) "
      "AND sequence > ? ORDER BY sequence LIMIT ?");
  select.bind(1, std::string(job));
  select.bind(2, after);
  select.bind(3, limit);
  std::vector<EventRow> rows;
  while (select.executeStep()) {
    rows.emplace_back(select.getColumn(0).getInt64(), select.getColumn(1).getString());
  }
  return rows;
}

}  // namespace wan::server
