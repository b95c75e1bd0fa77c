// Delivers the reports of jobs' ends (docs/use/webhooks.md).
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
  // How many reports are sent at a time; to one host, and for one owner, at most half as many
  // (WebhookTurns).
  int parallel = 8;
  // The time to the second attempt; it doubles with each further one up to `most_delay`. A random
  // part of up to a quarter is added, so that reports do not come back all at once.
  absl::Duration first_delay = absl::Seconds(2);
  absl::Duration most_delay = absl::Hours(1);
  // A report of a job that ended longer ago is given up when an attempt fails, unless the wall
  // clock has jumped and ages cannot be believed (WallClockGuard).
  absl::Duration most_age = absl::Hours(24);
};

// Thread-safe.
class WebhookDelivery final : public StateListener {
 public:
  // `transport` and `clock` must outlive the object. The listeners hear OnWebhook.
  WebhookDelivery(WebhookOptions options, WebhookTransport& transport, Clock& clock,
                  std::vector<StateListener*> listeners);
  WebhookDelivery(const WebhookDelivery&) = delete;
  WebhookDelivery& operator=(const WebhookDelivery&) = delete;
  // Stops.
  ~WebhookDelivery() override;

  // Begins to deliver the outbox's reports, present and future. `outbox` must live until Stop. Call
  // once.
  void Start(WebhookOutbox& outbox);

  // Cuts off the attempts that run; their reports stay in the outbox. Idempotent.
  void Stop();

  void OnJobEndStored() override;

 private:
  void Loop();
  // Adds the outbox's new reports to the turns. Returns false if the outbox cannot be read.
  bool Load();
  // Makes one attempt and frees the report's place.
  void Attempt(const WaitingReport& report);
  // Sends the report. Returns whether the host answered; nullopt if no request was made.
  std::optional<bool> Send(const PendingWebhook& webhook, WebhookOutcome& outcome);
  // Frees the report's place; with `again`, the next attempt is due then.
  void End(WaitingReport report, std::optional<bool> answered, std::optional<absl::Time> again);
  bool IsTooOld(const PendingWebhook& webhook);
  absl::Duration DelayAfter(int attempts) const;
  // Upper bound of DelayAfter.
  absl::Duration LongestDelay() const;
  // Waits until `time` of the steady clock, for a change after `seen`, or for the stop.
  void Await(absl::Time time, int64_t seen);

  const WebhookOptions options_;
  WebhookTransport& transport_;
  Clock& clock_;
  Clock& steady_;  // for the times of the turns, because the wall clock may be set
  const std::vector<StateListener*> listeners_;
  WebhookOutbox* outbox_ = nullptr;
  std::stop_source stopping_;
  absl::Mutex loading_;                                // one Load at a time; taken before mutex_
  int64_t last_number_ ABSL_GUARDED_BY(loading_) = 0;  // of the newest loaded report
  absl::Mutex mutex_;
  WallClockGuard guard_ ABSL_GUARDED_BY(mutex_);
  WebhookTurns turns_ ABSL_GUARDED_BY(mutex_);
  bool unloaded_ ABSL_GUARDED_BY(mutex_) = true;  // the outbox may have reports that turns_ lacks
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;   // counts changes of turns_ and unloaded_
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace wan::server
