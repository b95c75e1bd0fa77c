// Sends webhooks that report the end of jobs (docs/use/webhooks.md).
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/retention/wall_clock_guard.h"
#include "server/store/webhook_outbox.h"
#include "server/watch/listener.h"
#include "server/webhooks/webhook_rules.h"
#include "server/webhooks/webhook_transport.h"
#include "server/webhooks/webhook_turns.h"

namespace wan::server {

struct WebhookOptions {
  WebhookRules rules;
  std::string secret;
  // Maximum number of reports to send at a time; at most half of these go to one host or are for
  // one owner (WebhookTurns).
  int parallel = 8;
  // Time before the second attempt; the time doubles with each further attempt, up to `most_delay`.
  // The object adds a random time of up to a quarter, so that reports are not all repeated at one
  // moment.
  absl::Duration first_delay = absl::Seconds(2);
  absl::Duration most_delay = absl::Hours(1);
  // The object gives up a report if an attempt fails and the report's job ended longer ago than
  // this, unless the wall clock has jumped and ages cannot be trusted (WallClockGuard).
  absl::Duration most_age = absl::Hours(24);
};

// Thread-safe.
class WebhookDelivery final : public StateListener {
 public:
  // `transport`, `clock` and `listeners` must outlive the object. The object calls
  // StateListener::OnWebhook of the listeners after each attempt.
  WebhookDelivery(WebhookOptions options, WebhookTransport& transport, Clock& clock,
                  std::vector<StateListener*> listeners);
  WebhookDelivery(const WebhookDelivery&) = delete;
  WebhookDelivery& operator=(const WebhookDelivery&) = delete;
  // Calls Stop if nobody has.
  ~WebhookDelivery() override;

  // Begins to deliver the reports that are or will be in the outbox, which must live until Stop.
  // Call Start at most once.
  void Start(WebhookOutbox& outbox);

  // Cancels the attempts that are running; their reports stay in the outbox. Later calls do
  // nothing.
  void Stop();

  void OnJobEndStored() override;

 private:
  void Loop();
  // Adds to turns_ the reports that are new in the outbox. Returns false if the outbox cannot be
  // read.
  bool Load();
  // Makes one attempt to send a report, and then calls End.
  void Attempt(const WaitingReport& report);
  // Sends the report to its host. Returns whether the host has answered; nullopt if no request was
  // made.
  std::optional<bool> Send(const PendingWebhook& webhook, WebhookOutcome& outcome);
  // Frees the report's slot in turns_. If `again` is set, adds the report again with the due time
  // `again`.
  void End(WaitingReport report, std::optional<bool> answered, std::optional<absl::Time> again);
  bool IsTooOld(const PendingWebhook& webhook);
  absl::Duration DelayAfter(int attempts) const;
  // Returns the longest time that DelayAfter can return.
  absl::Duration LongestDelay() const;
  // Waits until `time` of the steady clock, until something changes after the change numbered
  // `seen`, or until the stop.
  void Await(absl::Time time, int64_t seen);

  const WebhookOptions options_;
  WebhookTransport& transport_;
  Clock& clock_;
  Clock& steady_;  // the steady clock, used for due times because the wall clock may be set
  const std::vector<StateListener*> listeners_;
  WebhookOutbox* outbox_ = nullptr;
  std::stop_source stopping_;
  absl::Mutex loading_;  // lets one Load run at a time; taken before mutex_
  // Number of the newest report that was loaded.
  int64_t last_number_ ABSL_GUARDED_BY(loading_) = 0;
  absl::Mutex mutex_;
  WallClockGuard guard_ ABSL_GUARDED_BY(mutex_);
  WebhookTurns turns_ ABSL_GUARDED_BY(mutex_);
  // Whether the outbox may have reports that turns_ lacks.
  bool unloaded_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // number of changes of turns_ and unloaded_ so far
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace wan::server
