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

// One report.
struct PendingWebhook {
  int64_t number = 0;  // grows with each report
  // The job at its end; its request has only model, labels and webhook_url.
  wan::v1::Job job;
  int attempts = 0;  // attempts so far, including the current one

  friend bool operator==(const PendingWebhook& a, const PendingWebhook& b) {
    return a.number == b.number;
  }
};

// A report as listed, without its contents.
struct QueuedWebhook {
  int64_t number = 0;
  std::string url;    // webhook_url of its job; empty if the report cannot be read
  std::string owner;  // owner of its job
  int attempts = 0;   // attempts so far
  absl::Time due;     // the next attempt; a new report is due at once
};

// Thread-safe. Errors as of JobStore. A report is added with its job's end, in one transaction; it
// stays when the job is deleted.
class WebhookOutbox {
 public:
  virtual ~WebhookOutbox() = default;

  // Returns at most `most` reports with numbers above `after`, in the order of the numbers.
  virtual absl::StatusOr<std::vector<QueuedWebhook>> Webhooks(int64_t after, int most) = 0;

  // Takes a report for one attempt; nullopt if it no longer exists. It is due again at `due` unless
  // it is removed before, so that a crash during the attempt loses no report.
  virtual absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(int64_t number,
                                                                    absl::Time due) = 0;

  // Removes a report that was delivered or given up. After a crash it may reappear.
  virtual absl::Status RemoveWebhook(int64_t number) = 0;
};

}  // namespace wan::server
