#include "server/webhooks/webhook_delivery.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/webhooks/webhook_message.h"

namespace wan::server {
namespace {

// How long to wait when the store does not answer.
constexpr absl::Duration kStoreAgain = absl::Seconds(5);
constexpr int kGone = 410;
constexpr double kMostJitter = 0.25;
constexpr absl::Duration kForEver = absl::InfiniteDuration();

double Random() {
  thread_local std::mt19937_64 generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

}  // namespace

WebhookDelivery::WebhookDelivery(WebhookOptions options, WebhookTransport& transport, Clock& clock,
                                 std::vector<StateListener*> listeners)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      listeners_(std::move(listeners)),
      guard_(clock) {}

WebhookDelivery::~WebhookDelivery() { Stop(); }

void WebhookDelivery::Start(WebhookOutbox& outbox) {
  outbox_ = &outbox;
  for (int i = 0; i < options_.parallel; ++i) threads_.emplace_back([this] { Loop(); });
}

void WebhookDelivery::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopping_.request_stop();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WebhookDelivery::OnJobEndStored() {
  absl::MutexLock lock(&mutex_);
  ++wakes_;
}

void WebhookDelivery::Loop() {
  for (;;) {
    int64_t seen = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (stop_) return;
      seen = wakes_;
    }
    const absl::Time now = clock_.Now();
    const absl::StatusOr<std::optional<PendingWebhook>> taken = outbox_->TakeWebhook(
        now, now + LongestDelay(), [this](int attempts) { return DelayAfter(attempts); });
    if (!taken.ok()) {
      Await(kStoreAgain, seen);
    } else if (taken->has_value()) {
      Attempt(**taken);
    } else {
      const absl::StatusOr<std::optional<absl::Time>> next = outbox_->NextWebhook();
      if (!next.ok()) {
        Await(kStoreAgain, seen);
      } else {
        const absl::Time due = next->value_or(absl::InfiniteFuture());
        Await(next->has_value() ? std::min(due - now, LongestDelay()) : kForEver, seen);
      }
    }
  }
}

void WebhookDelivery::Attempt(const PendingWebhook& webhook) {
  const std::string& url = webhook.job.request().webhook_url();
  WebhookOutcome outcome;
  outcome.job = webhook.job.name();
  outcome.host = WebhookHostOf(url);
  outcome.attempts = webhook.attempts;
  // The operator may have changed the hosts since the job was accepted.
  outcome.problem = WebhookUrlProblem(options_.rules, url);
  int status = 0;
  if (outcome.problem.empty()) {
    const absl::StatusOr<int> answer = transport_.Post(
        url, MessageOf(webhook.job, options_.secret, clock_.Now()), stopping_.get_token());
    if (!answer.ok() && stopping_.stop_requested()) return;
    status = answer.value_or(0);
    if (!answer.ok()) {
      outcome.problem = std::string(answer.status().message());
    } else if (status < 200 || status >= 300) {
      outcome.problem = absl::StrCat("the answer has the status ", status);
    }
  }
  if (outcome.problem.empty()) {
    outcome.kind = WebhookOutcome::Kind::kDelivered;
  } else {
    outcome.kind = status == kGone || IsTooOld(webhook) ? WebhookOutcome::Kind::kGivenUp
                                                        : WebhookOutcome::Kind::kRetried;
  }
  if (outcome.kind != WebhookOutcome::Kind::kRetried) {
    // If that fails, it is sent once more, which its receiver is told to expect.
    outbox_->RemoveWebhook(webhook.number).IgnoreError();
  }
  for (StateListener* const listener : listeners_) listener->OnWebhook(outcome);
}

bool WebhookDelivery::IsTooOld(const PendingWebhook& webhook) {
  absl::MutexLock lock(&mutex_);
  return guard_.AgesHold() && clock_.Now() - ToTime(webhook.job.end_time()) > options_.most_age;
}

absl::Duration WebhookDelivery::DelayAfter(int attempts) const {
  absl::Duration delay = options_.first_delay;
  for (int i = 1; i < attempts && delay < options_.most_delay; ++i) delay *= 2;
  return std::min(delay, options_.most_delay) * (1 + kMostJitter * Random());
}

absl::Duration WebhookDelivery::LongestDelay() const {
  return options_.most_delay * (1 + kMostJitter);
}

void WebhookDelivery::Await(absl::Duration time, int64_t seen) {
  absl::MutexLock lock(&mutex_);
  const auto woken = [this, seen]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || wakes_ != seen; };
  Clock& steady = clock_.Steady();
  steady.AwaitUntil(mutex_, absl::Condition(&woken), steady.Now() + time);
}

}  // namespace wan::server
