// The reports of jobs' ends that were not delivered yet (docs/use/webhooks.md).
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

// One report.
struct PendingWebhook {
  int64_t number = 0;  // grows with each report
  // The job as it ended: of its request only the model, the labels and the webhook_url.
  wan::v1::Job job;
  int attempts = 0;  // this one included

  // Whether both are the same report.
  friend bool operator==(const PendingWebhook& a, const PendingWebhook& b) {
    return a.number == b.number;
  }
};

// What is known of a report without taking it.
struct QueuedWebhook {
  int64_t number = 0;
  std::string url;    // of its job; empty if the report cannot be read
  std::string owner;  // of its job
  int attempts = 0;   // so far
  absl::Time due;     // the next attempt; a new report is due at once
};

// Thread-safe. Errors as of JobStore. A report is added with its job's end, in one transaction; it
// stays when the job is deleted.
class WebhookOutbox {
 public:
  virtual ~WebhookOutbox() = default;

  // The reports with numbers above `after`, in the order of the numbers, `most` of them.
  virtual absl::StatusOr<std::vector<QueuedWebhook>> Webhooks(int64_t after, int most) = 0;

  // Takes a report for one attempt; nothing if it is not there any more. It is due at `due` again
  // unless it is removed before: so a report whose attempt was cut off is not lost.
  virtual absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(int64_t number,
                                                                    absl::Time due) = 0;

  // Removes a report that was delivered or given up. After a crash it may be there again.
  virtual absl::Status RemoveWebhook(int64_t number) = 0;
};

}  // namespace wan::server
