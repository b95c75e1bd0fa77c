// Delivers the reports of jobs' ends (docs/webhooks.md).
#pragma once

#include <functional>
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

namespace wan::server {

struct WebhookOptions {
  WebhookRules rules;
  std::string secret;
  // How many reports are sent at a time.
  int parallel = 4;
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
  void Attempt(const PendingWebhook& webhook);
  bool IsTooOld(const PendingWebhook& webhook);
  absl::Duration DelayAfter(int attempts) const;
  // What DelayAfter never exceeds.
  absl::Duration LongestDelay() const;
  // Waits until so much time has passed, a wake-up comes after `seen`, or the stop.
  void Await(absl::Duration time, int64_t seen);

  const WebhookOptions options_;
  WebhookTransport& transport_;
  Clock& clock_;
  const std::vector<StateListener*> listeners_;
  WebhookOutbox* outbox_ = nullptr;
  std::stop_source stopping_;
  absl::Mutex mutex_;
  WallClockGuard guard_ ABSL_GUARDED_BY(mutex_);
  int64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace wan::server
