#include "server/store/webhook_rows.h"

#include "server/store/stored_rows.h"

namespace wan::server {
void AddWebhookOf(SQLite::Database& db, const JobChange& change) {
  const std::optional<wan::v1::Job> job = WebhookOf(change);
  if (!job.has_value()) return;
  InsertWebhookRow(db, job->SerializeAsString(), /*attempts=*/0, /*due=*/0);
}

void InsertWebhookRow(SQLite::Database& db, std::string_view job, int64_t attempts, int64_t due) {
  SQLite::Statement insert(db, "INSERT INTO webhooks (job, attempts, due) VALUES (?, ?, ?)");
  insert.bind(1, static_cast<const void*>(job.data()), static_cast<int>(job.size()));
  insert.bind(2, attempts);
  insert.bind(3, due);
  insert.exec();
}

std::vector<QueuedWebhook> ReadWebhookRows(SQLite::Database& db, int64_t after, int most) {
  SQLite::Statement find(db,
                         "SELECT number, job, attempts, due FROM webhooks WHERE number > ? "
                         "ORDER BY number LIMIT ?");
  find.bind(1, after);
  find.bind(2, most);
  std::vector<QueuedWebhook> queued;
  while (find.executeStep()) {
    QueuedWebhook& read = queued.emplace_back();
    read.number = find.getColumn(0).getInt64();
    read.attempts = find.getColumn(2).getInt();
    read.due = absl::FromUnixMicros(find.getColumn(3).getInt64());
    wan::v1::Job job;
    if (!job.ParseFromString(find.getColumn(1).getString())) continue;
    read.url = job.request().webhook_url();
    read.owner = job.owner();
  }
  return queued;
}

std::optional<PendingWebhook> TakeWebhookRow(SQLite::Database& db, int64_t number, absl::Time due) {
  SQLite::Statement find(db, "SELECT job, attempts FROM webhooks WHERE number = ?");
  find.bind(1, number);
  if (!find.executeStep()) return std::nullopt;
  PendingWebhook taken;
  taken.number = number;
  taken.attempts = find.getColumn(1).getInt() + 1;
  if (!taken.job.ParseFromString(find.getColumn(0).getString())) {
    // Remove the report, because a job that cannot be read cannot be reported.
    RemoveWebhookRow(db, number);
    return std::nullopt;
  }
  SQLite::Statement update(db, "UPDATE webhooks SET attempts = ?, due = ? WHERE number = ?");
  update.bind(1, taken.attempts);
  update.bind(2, static_cast<int64_t>(absl::ToUnixMicros(due)));
  update.bind(3, number);
  update.exec();
  return taken;
}

void RemoveWebhookRow(SQLite::Database& db, int64_t number) {
  SQLite::Statement remove(db, "DELETE FROM webhooks WHERE number = ?");
  remove.bind(1, number);
  remove.exec();
}

}  // namespace wan::server
