// Reads and writes the table webhooks of the SQLite store, the outbox of webhook reports.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "server/store/job_store.h"
#include "server/store/webhook_outbox.h"

namespace wan::server {

// Call all functions of this file with the connection's lock held, and those that write inside a
// transaction. The functions throw the exceptions of SQLite.

// Adds a report if the change ends a job that has a webhook_url.
void AddWebhookOf(SQLite::Database& db, const JobChange& change);

// Adds a report that was read from another database: the serialized job, the attempts so far, and
// the due time in microseconds since the epoch.
void InsertWebhookRow(SQLite::Database& db, std::string_view job, int64_t attempts, int64_t due);

// The functions below implement the methods of WebhookOutbox.
std::vector<QueuedWebhook> ReadWebhookRows(SQLite::Database& db, int64_t after, int most);
std::optional<PendingWebhook> TakeWebhookRow(SQLite::Database& db, int64_t number, absl::Time due);
void RemoveWebhookRow(SQLite::Database& db, int64_t number);

}  // namespace wan::server
