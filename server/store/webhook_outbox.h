// Stores the webhook reports of ended jobs until they are delivered (docs/use/webhooks.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// The webhook report of one job.
struct PendingWebhook {
  int64_t number = 0;  // greater than the number of any earlier report
  // The job as it was at its end; its `request` has only model, labels and webhook_url.
  wan::v1::Job job;
  int attempts = 0;  // number of attempts to deliver the report, including the current attempt

  friend bool operator==(const PendingWebhook& a, const PendingWebhook& b) {
    return a.number == b.number;
  }
};

// A report as lists show it, without its contents.
struct QueuedWebhook {
  int64_t number = 0;
  std::string url;    // the job's webhook_url; empty if the report cannot be read
  std::string owner;  // the job's owner
  int attempts = 0;   // number of attempts to deliver the report so far
  absl::Time due;     // time of the next attempt; a new report is due at once
};

// Thread-safe. Errors are those of JobStore. The store adds a report in the transaction that stores
// the job's end; the report stays when the job is deleted.
class WebhookOutbox {
 public:
  virtual ~WebhookOutbox() = default;

  // Returns at most `most` reports whose numbers are above `after`, in ascending order.
  virtual absl::StatusOr<std::vector<QueuedWebhook>> Webhooks(int64_t after, int most) = 0;

  // Takes a report for one attempt to deliver it; returns nullopt if the report no longer exists.
  // Unless RemoveWebhook removes the report before, the report is due again at `due`, so that a
  // crash during the attempt loses no report.
  virtual absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(int64_t number,
                                                                    absl::Time due) = 0;

  // Removes a report that was delivered or given up. After a crash of the machine the report may be
  // in the outbox again.
  virtual absl::Status RemoveWebhook(int64_t number) = 0;
};

}  // namespace wan::server
