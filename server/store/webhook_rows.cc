#include "server/store/webhook_rows.h"

#include <algorithm>
#include <string>
#include <utility>

namespace wan::server {
namespace {

bool Ends(const wan::v1::Event& event) {
  return event.has_completed() || event.has_failed() || event.has_cancelled();
}

}  // namespace

void AddWebhookOf(SQLite::Database& db, const JobChange& change) {
  // A later change of an ended job, such as one of its labels, has no such event.
  if (!change.row.has_value() || change.row->request().webhook_url().empty() ||
      std::none_of(change.events.begin(), change.events.end(), Ends)) {
    return;
  }
  wan::v1::Job job = *change.row;
  wan::v1::GenerationRequest told;
  told.set_model(job.request().model());
  told.set_webhook_url(job.request().webhook_url());
  *told.mutable_labels() = job.request().labels();
  *job.mutable_request() = std::move(told);
  InsertWebhookRow(db, job.SerializeAsString(), /*attempts=*/0, /*due=*/0);
}

void InsertWebhookRow(SQLite::Database& db, std::string_view job, int64_t attempts, int64_t due) {
  SQLite::Statement insert(db, "INSERT INTO webhooks (job, attempts, due) VALUES (?, ?, ?)");
  insert.bind(1, static_cast<const void*>(job.data()), static_cast<int>(job.size()));
  insert.bind(2, attempts);
  insert.bind(3, due);
  insert.exec();
}

std::optional<PendingWebhook> TakeWebhookRow(
    SQLite::Database& db, absl::Time now, absl::Time latest,
    const std::function<absl::Duration(int attempts)>& delay) {
  SQLite::Statement find(db,
                         "SELECT number, job, attempts FROM webhooks WHERE due <= ? OR due > ? "
                         "ORDER BY due, number LIMIT 1");
  find.bind(1, static_cast<int64_t>(absl::ToUnixMicros(now)));
  find.bind(2, static_cast<int64_t>(absl::ToUnixMicros(latest)));
  if (!find.executeStep()) return std::nullopt;
  PendingWebhook taken;
  taken.number = find.getColumn(0).getInt64();
  taken.attempts = find.getColumn(2).getInt() + 1;
  if (!taken.job.ParseFromString(find.getColumn(1).getString())) {
    // Nobody can be told of it.
    RemoveWebhookRow(db, taken.number);
    return std::nullopt;
  }
  SQLite::Statement update(db, "UPDATE webhooks SET attempts = ?, due = ? WHERE number = ?");
  update.bind(1, taken.attempts);
  update.bind(2, static_cast<int64_t>(absl::ToUnixMicros(now + delay(taken.attempts))));
  update.bind(3, taken.number);
  update.exec();
  return taken;
}

std::optional<absl::Time> NextWebhookRow(SQLite::Database& db) {
  SQLite::Statement find(db, "SELECT due FROM webhooks ORDER BY due LIMIT 1");
  if (!find.executeStep()) return std::nullopt;
  return absl::FromUnixMicros(find.getColumn(0).getInt64());
}

void RemoveWebhookRow(SQLite::Database& db, int64_t number) {
  SQLite::Statement remove(db, "DELETE FROM webhooks WHERE number = ?");
  remove.bind(1, number);
  remove.exec();
}

}  // namespace wan::server
