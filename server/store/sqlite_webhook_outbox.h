// The outbox of the SQLite store, in the table webhooks of the job database.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/job_database.h"
#include "server/store/webhook_outbox.h"

namespace wan::server {

// Changes are not synced: if a power cut undoes a change, a report is delivered once more.
class SqliteWebhookOutbox final : public WebhookOutbox {
 public:
  // The database must outlive the outbox.
  explicit SqliteWebhookOutbox(JobDatabase& database) : database_(database) {}

  absl::StatusOr<std::vector<QueuedWebhook>> Webhooks(int64_t after, int most) override;
  absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(int64_t number,
                                                            absl::Time due) override;
  absl::Status RemoveWebhook(int64_t number) override;

 private:
  JobDatabase& database_;
};

}  // namespace wan::server
