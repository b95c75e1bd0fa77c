// The reports of jobs' ends that were not delivered yet (docs/webhooks.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

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

// Thread-safe. Errors as of JobStore. A report is added with its job's end, in one transaction; it
// stays when the job is deleted.
class WebhookOutbox {
 public:
  virtual ~WebhookOutbox() = default;

  // Takes the report that has been due for the longest time, for one attempt; nothing if none is
  // due at `now`. One that would be due after `latest`, which is later than every delay allows, is
  // due as well: the wall clock has been set back since. It is due again after `delay`, which gets
  // the number of attempts with this one, unless it is removed before: so a report whose attempt
  // was cut off is not lost.
  virtual absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(
      absl::Time now, absl::Time latest,
      const std::function<absl::Duration(int attempts)>& delay) = 0;

  // When the next report is due; nothing if there is none.
  virtual absl::StatusOr<std::optional<absl::Time>> NextWebhook() = 0;

  // Removes a report that was delivered or given up. After a crash it may be there again.
  virtual absl::Status RemoveWebhook(int64_t number) = 0;
};

}  // namespace wan::server
