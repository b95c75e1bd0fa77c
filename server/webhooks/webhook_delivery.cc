#include "server/webhooks/webhook_delivery.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/webhooks/webhook_message.h"

namespace wan::server {
namespace {

// How long to wait before using the store again after an error of the store.
constexpr absl::Duration kStoreAgain = absl::Seconds(5);
constexpr int kGone = 410;
constexpr double kMostJitter = 0.25;
// Maximum number of reports that are read from the outbox at once.
constexpr int kLoadAtOnce = 1'000;

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
      steady_(clock.Steady()),
      listeners_(std::move(listeners)),
      guard_(clock),
      turns_(options_.parallel) {}

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
  unloaded_ = true;
  ++changes_;
}

void WebhookDelivery::Loop() {
  for (;;) {
    bool unloaded = false;
    {
      absl::MutexLock lock(&mutex_);
      unloaded = std::exchange(unloaded_, false);
    }
    const bool loaded = !unloaded || Load();
    std::optional<WaitingReport> report;
    absl::Time wait_until = loaded ? absl::InfiniteFuture() : steady_.Now() + kStoreAgain;
    int64_t seen = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (stop_) return;
      if (!loaded) unloaded_ = true;
      if (loaded && unloaded_) continue;
      seen = changes_;
      report = turns_.Take(steady_.Now());
      wait_until = std::min(wait_until, turns_.NextDue().value_or(absl::InfiniteFuture()));
    }
    if (report.has_value()) {
      Attempt(*report);
    } else {
      Await(wait_until, seen);
    }
  }
}

bool WebhookDelivery::Load() {
  absl::MutexLock loading(&loading_);
  for (;;) {
    const auto queued = outbox_->Webhooks(last_number_, kLoadAtOnce);
    if (!queued.ok()) return false;
    if (queued->empty()) return true;
    const absl::Time now = clock_.Now();
    absl::MutexLock lock(&mutex_);
    for (const QueuedWebhook& webhook : *queued) {
      // Limit the wait: the wall clock may have been set back since `due` was written.
      const absl::Duration wait = std::min(webhook.due - now, LongestDelay());
      turns_.Add({webhook.number, WebhookHostOf(webhook.url), webhook.owner, webhook.attempts,
                  steady_.Now() + std::max(wait, absl::ZeroDuration())});
    }
    last_number_ = queued->back().number;
    ++changes_;
  }
}

void WebhookDelivery::Attempt(const WaitingReport& report) {
  const absl::Duration delay = DelayAfter(report.attempts + 1);
  const absl::Time again = steady_.Now() + delay;
  const absl::StatusOr<std::optional<PendingWebhook>> taken =
      outbox_->TakeWebhook(report.number, clock_.Now() + delay);
  if (!taken.ok()) {
    {
      // Wait without freeing the report's slot, because the store would refuse other reports as
      // well.
      absl::MutexLock lock(&mutex_);
      steady_.AwaitUntil(mutex_, absl::Condition(&stop_), steady_.Now() + kStoreAgain);
    }
    End(report, std::nullopt, steady_.Now());
    return;
  }
  if (!taken->has_value()) {
    End(report, std::nullopt, std::nullopt);
    return;
  }
  const PendingWebhook& webhook = **taken;
  WebhookOutcome outcome;
  outcome.job = webhook.job.name();
  outcome.host = report.host;
  outcome.attempts = webhook.attempts;
  const std::optional<bool> answered = Send(webhook, outcome);
  if (stopping_.stop_requested() && !outcome.problem.empty()) return;
  bool removed = false;
  if (outcome.kind != WebhookOutcome::Kind::kRetried) {
    // If the removal fails, the report is sent once more; docs/use/webhooks.md tells receivers to
    // expect repeated reports.
    removed = outbox_->RemoveWebhook(webhook.number).ok();
  }
  WaitingReport next = report;
  next.attempts = webhook.attempts;
  for (StateListener* const listener : listeners_) listener->OnWebhook(outcome);
  End(std::move(next), answered, removed ? std::nullopt : std::optional(again));
}

std::optional<bool> WebhookDelivery::Send(const PendingWebhook& webhook, WebhookOutcome& outcome) {
  const std::string& url = webhook.job.request().webhook_url();
  std::optional<bool> answered;
  int status = 0;
  // The operator may have changed the allowed hosts since the job was accepted.
  outcome.problem = WebhookUrlProblem(options_.rules, url);
  if (outcome.problem.empty()) {
    const absl::StatusOr<int> answer = transport_.Post(
        url, MessageOf(webhook.job, options_.secret, clock_.Now()), stopping_.get_token());
    answered = answer.ok();
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
  return answered;
}

void WebhookDelivery::End(WaitingReport report, std::optional<bool> answered,
                          std::optional<absl::Time> again) {
  absl::MutexLock lock(&mutex_);
  turns_.End(report, answered);
  if (again.has_value()) {
    report.due = *again;
    turns_.Add(report);
  }
  ++changes_;
}

bool WebhookDelivery::IsTooOld(const PendingWebhook& webhook) {
  absl::MutexLock lock(&mutex_);
  return guard_.AgesHold() && clock_.Now() - ToTime(webhook.job.end_time()) > options_.most_age;
}

absl::Duration WebhookDelivery::DelayAfter(int attempts) const {
  absl::Duration delay = options_.first_delay;
  for (int i = 1; i < attempts && delay < options_.most_delay; ++i) delay *= 2;
  // Round to microseconds, because the outbox stores times with that resolution.
  return absl::Trunc(std::min(delay, options_.most_delay) * (1 + kMostJitter * Random()),
                     absl::Microseconds(1));
}

absl::Duration WebhookDelivery::LongestDelay() const {
  return options_.most_delay * (1 + kMostJitter);
}

void WebhookDelivery::Await(absl::Time time, int64_t seen) {
  absl::MutexLock lock(&mutex_);
  const auto woken = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || changes_ != seen;
  };
  steady_.AwaitUntil(mutex_, absl::Condition(&woken), time);
}

}  // namespace wan::server
