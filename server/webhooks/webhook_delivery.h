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
  // How many reports are sent at a time; of one host, and one owner, half as many (WebhookTurns).
  int parallel = 8;
  // The time to the second attempt, which doubles with each further one up to `most_delay`. Each
  // is made up to a quarter longer at random, so that reports do not come back all at once.
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

  // Begins to deliver what the outbox has and will have. It must live until Stop. Call once.
  void Start(WebhookOutbox& outbox);

  // Ends the attempts that run; their reports are due again later. Idempotent.
  void Stop();

  void OnJobEndStored() override;

 private:
  void Loop();
  // Adds the reports that the outbox has got to the turns. False: it does not answer.
  bool Load();
  // Makes an attempt, and gives the report's place back.
  void Attempt(const WaitingReport& report);
  // Sends the report; false: the host did not answer. Nothing: it was not asked.
  std::optional<bool> Send(const PendingWebhook& webhook, WebhookOutcome& outcome);
  // The place of the report is free again; it waits until `again`, if that is a time.
  void End(WaitingReport report, std::optional<bool> answered, std::optional<absl::Time> again);
  bool IsTooOld(const PendingWebhook& webhook);
  absl::Duration DelayAfter(int attempts) const;
  // What DelayAfter never exceeds.
  absl::Duration LongestDelay() const;
  // Waits until this time of the steady clock, a change after `seen`, or the stop.
  void Await(absl::Time time, int64_t seen);

  const WebhookOptions options_;
  WebhookTransport& transport_;
  Clock& clock_;
  Clock& steady_;  // times of the turns are its: the wall clock may be set
  const std::vector<StateListener*> listeners_;
  WebhookOutbox* outbox_ = nullptr;
  std::stop_source stopping_;
  absl::Mutex loading_;                                // one Load at a time; taken before mutex_
  int64_t last_number_ ABSL_GUARDED_BY(loading_) = 0;  // of the reports that were loaded
  absl::Mutex mutex_;
  WallClockGuard guard_ ABSL_GUARDED_BY(mutex_);
  WebhookTurns turns_ ABSL_GUARDED_BY(mutex_);
  bool unloaded_ ABSL_GUARDED_BY(mutex_) = true;  // the outbox may have reports that turns_ has not
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;   // of turns_ and unloaded_
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace wan::server
