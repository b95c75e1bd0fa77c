#include "server/postgres/postgres_outbox.h"

#include <string>
#include <utility>

#include "server/store/await.h"
#include "server/store/stored_rows.h"

namespace wan::server {
namespace {

// Runs `body` in a transaction and waits until it is committed.
absl::Status Write(PostgresDatabase& database, PostgresDatabase::Body body) {
  return AwaitDone<absl::Status>(
      [&](PostgresDatabase::Done done) { database.Change(std::move(body), std::move(done)); });
}

void RemoveRowOf(Connection& connection, int64_t number) {
  connection.Run("DELETE FROM webhooks WHERE number = $1", {number});
}

}  // namespace

void AddWebhookRow(Connection& connection, int64_t number, const JobChange& change) {
  const std::optional<wan::v1::Job> job = WebhookOf(change);
  if (!job.has_value()) return;
  const std::string bytes = job->SerializeAsString();
  connection.Run(
      "INSERT INTO webhooks (ended_job, job) VALUES ($1, $2) ON CONFLICT (ended_job) DO NOTHING",
      {number, Bytes{bytes}});
}

absl::StatusOr<std::vector<QueuedWebhook>> PostgresOutbox::Webhooks(int64_t after, int most) {
  using Result = absl::StatusOr<std::vector<QueuedWebhook>>;
  return database_.Read([&](Connection& connection) -> Result {
    const Rows found = connection.Run(
        "SELECT number, attempts, due, job FROM webhooks WHERE number > $1 ORDER BY number "
        "LIMIT $2",
        {after, int64_t{most}});
    std::vector<QueuedWebhook> queued;
    for (int row = 0; row < found.size(); ++row) {
      QueuedWebhook& read = queued.emplace_back();
      read.number = found.Int(row, 0);
      read.attempts = static_cast<int>(found.Int(row, 1));
      read.due = absl::FromUnixMicros(found.Int(row, 2));
      wan::v1::Job job;
      if (!job.ParseFromString(found.Text(row, 3))) continue;
      read.url = job.request().webhook_url();
      read.owner = job.owner();
    }
    return queued;
  });
}

absl::StatusOr<std::optional<PendingWebhook>> PostgresOutbox::TakeWebhook(int64_t number,
                                                                          absl::Time due) {
  std::optional<PendingWebhook> taken;
  const absl::Status status = Write(database_, [&](Connection& connection) {
    taken.reset();
    const Rows found = connection.Run(
        "UPDATE webhooks SET attempts = attempts + 1, due = $2 WHERE number = $1 "
        "RETURNING job, attempts",
        {number, absl::ToUnixMicros(due)});
    if (found.empty()) return absl::OkStatus();
    taken.emplace();
    taken->number = number;
    taken->attempts = static_cast<int>(found.Int(0, 1));
    if (!taken->job.ParseFromString(found.Text(0, 0))) {
      // Remove the report, because a job that cannot be read cannot be reported.
      RemoveRowOf(connection, number);
      taken.reset();
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return taken;
}

absl::Status PostgresOutbox::RemoveWebhook(int64_t number) {
  return Write(database_, [number](Connection& connection) {
    RemoveRowOf(connection, number);
    return absl::OkStatus();
  });
}

}  // namespace wan::server
