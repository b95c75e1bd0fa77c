#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr double kMostJitter = 0.25;
constexpr char kStopped[] = "the server stopped before the collector of traces had taken them";

double Random() {
  thread_local std::mt19937_64 generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

// Whether OTLP asks clients to try again after an answer with this HTTP status.
bool MayTryAgain(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

SpanExporter::SpanExporter(SpanExporterOptions options, PostSpans post, Clock& clock,
                           std::vector<StateListener*> listeners)
    : options_(std::move(options)),
      post_(std::move(post)),
      clock_(clock.Steady()),
      listeners_(std::move(listeners)),
      thread_([this] { Loop(); }) {}

SpanExporter::~SpanExporter() { Stop(); }

void SpanExporter::Add(TraceSpan span) {
  std::string problem;
  {
    absl::MutexLock lock(&mutex_);
    if (stop_) {
      problem = kStopped;
    } else if (waiting_.size() >= options_.capacity) {
      problem = absl::StrCat(options_.capacity, " spans wait for the collector of traces already");
    } else {
      if (waiting_.empty()) due_ = clock_.Now() + options_.interval;
      waiting_.push_back(std::move(span));
      return;
    }
  }
  Tell({.dropped = 1, .problem = std::move(problem)});
}

void SpanExporter::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    clock_.AwaitUntil(mutex_, absl::Condition(&ended_), clock_.Now() + options_.flush_time);
  }
  stopping_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void SpanExporter::Loop() {
  for (std::vector<TraceSpan> batch = TakeBatch(); !batch.empty(); batch = TakeBatch()) {
    if (stopping_.stop_requested()) {
      Tell({.dropped = static_cast<int64_t>(batch.size()), .problem = kStopped});
    } else {
      Send(batch);
    }
  }
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

std::vector<TraceSpan> SpanExporter::TakeBatch() {
  absl::MutexLock lock(&mutex_);
  const auto begun = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !waiting_.empty();
  };
  const auto full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || waiting_.size() >= options_.batch;
  };
  mutex_.Await(absl::Condition(&begun));
  clock_.AwaitUntil(mutex_, absl::Condition(&full), due_);
  const auto end =
      waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), options_.batch));
  std::vector<TraceSpan> batch(std::make_move_iterator(waiting_.begin()),
                               std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  due_ = clock_.Now() + options_.interval;
  return batch;
}

void SpanExporter::Send(const std::vector<TraceSpan>& batch) {
  const auto spans = static_cast<int64_t>(batch.size());
  const std::string request = ToExportRequest(options_.resource, options_.version, batch);
  const absl::Time first = clock_.Now();
  absl::Duration delay = options_.first_delay;
  for (;;) {
    const absl::StatusOr<PostAnswer> answer = post_(request, stopping_.get_token());
    if (answer.ok() && answer->status >= 200 && answer->status < 300) {
      const PartialSuccess partial = ParseExportResponse(answer->body);
      const int64_t rejected = std::clamp<int64_t>(partial.rejected_spans, 0, spans);
      SpansOutcome outcome{.exported = spans - rejected, .failed = rejected};
      if (rejected > 0) {
        outcome.problem = absl::StrCat("the collector of traces rejects spans: ", partial.message);
      }
      return Tell(outcome);
    }
    const std::string problem =
        answer.ok()
            ? absl::StrCat("the collector of traces answers with the status ", answer->status)
        : stopping_.stop_requested()
            ? kStopped
            : absl::StrCat("the collector of traces does not answer: ", answer.status().message());
    const bool final = answer.ok() && !MayTryAgain(answer->status);
    const absl::Duration asked =
        answer.ok() ? answer->retry_after.value_or(absl::ZeroDuration()) : absl::ZeroDuration();
    const absl::Duration wait = std::max(delay * (1 + kMostJitter * Random()), asked);
    if (final || clock_.Now() + wait - first > options_.most_age || AwaitStop(wait)) {
      return Tell({.failed = spans, .problem = problem});
    }
    delay = std::min(delay * 2, options_.most_delay);
  }
}

void SpanExporter::Tell(const SpansOutcome& outcome) const {
  for (StateListener* const listener : listeners_) listener->OnSpans(outcome);
}

bool SpanExporter::AwaitStop(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  return clock_.AwaitUntil(mutex_, absl::Condition(&stop_), clock_.Now() + time);
}

}  // namespace wan::server
