// The outbox of the PostgreSQL store, in the table webhooks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/postgres/connection.h"
#include "server/postgres/postgres_database.h"
#include "server/store/job_store.h"
#include "server/store/webhook_outbox.h"

namespace wan::server {

// Adds the report of the job that the change ends, unless the job has none or has one already: a
// change whose commit was interrupted may be repeated. Call it inside a transaction.
void AddWebhookRow(Connection& connection, int64_t number, const JobChange& change);

class PostgresOutbox final : public WebhookOutbox {
 public:
  // The database must outlive the calls.
  explicit PostgresOutbox(PostgresDatabase& database) : database_(database) {}

  absl::StatusOr<std::vector<QueuedWebhook>> Webhooks(int64_t after, int most) override;
  absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(int64_t number,
                                                            absl::Time due) override;
  absl::Status RemoveWebhook(int64_t number) override;

 private:
  PostgresDatabase& database_;
};

}  // namespace wan::server
