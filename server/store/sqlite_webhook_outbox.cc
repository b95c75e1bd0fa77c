#include "server/store/sqlite_webhook_outbox.h"

#include <utility>

#include "server/store/await.h"
#include "server/store/webhook_rows.h"

namespace wan::server {
namespace {

// Runs `body` in a transaction and waits until it is committed.
template <typename Body>
absl::Status WriteUnsynced(JobDatabase& database, const Body& body) {
  return AwaitDone<absl::Status>([&](JobDatabase::Done done) {
    const auto write = [&body](SQLite::Database& db) -> absl::Status {
      SQLite::Transaction transaction(db);
      body(db);
      transaction.commit();
      return absl::OkStatus();
    };
    database.Write(write, std::move(done));
  });
}

}  // namespace

absl::StatusOr<std::vector<QueuedWebhook>> SqliteWebhookOutbox::Webhooks(int64_t after, int most) {
  using Result = absl::StatusOr<std::vector<QueuedWebhook>>;
  return database_.Read(
      [&](SQLite::Database& db) -> Result { return ReadWebhookRows(db, after, most); });
}

absl::StatusOr<std::optional<PendingWebhook>> SqliteWebhookOutbox::TakeWebhook(int64_t number,
                                                                               absl::Time due) {
  std::optional<PendingWebhook> taken;
  const absl::Status status = WriteUnsynced(
      database_, [&](SQLite::Database& db) { taken = TakeWebhookRow(db, number, due); });
  if (!status.ok()) return status;
  return taken;
}

absl::Status SqliteWebhookOutbox::RemoveWebhook(int64_t number) {
  return WriteUnsynced(database_, [&](SQLite::Database& db) { RemoveWebhookRow(db, number); });
}

}  // namespace wan::server
