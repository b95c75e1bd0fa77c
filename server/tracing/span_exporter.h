// Sends spans to a collector on its own thread, so that jobs never wait for the collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/outbound/http_post.h"
#include "server/tracing/trace_span.h"
#include "server/watch/listener.h"

namespace wan::server {

struct SpanExporterOptions {
  // The resource attributes, which describe this process, and the server's version.
  std::vector<SpanAttribute> resource;
  std::string version;
  // Maximum number of spans that wait; further spans are dropped.
  size_t capacity = 8192;
  // Maximum number of spans that are sent in one request. A request has fewer when the oldest span
  // has waited for `interval`.
  size_t batch = 512;
  absl::Duration interval = absl::Seconds(2);
  // Time before the second attempt of a request; the time doubles with each further attempt, up to
  // `most_delay`. The exporter adds a random time of up to a quarter, and respects the collector's
  // Retry-After.
  absl::Duration first_delay = absl::Seconds(1);
  absl::Duration most_delay = absl::Seconds(30);
  // The exporter gives up a request when an attempt fails this long after the first attempt.
  absl::Duration most_age = absl::Minutes(1);
  // Maximum time for which Stop goes on sending.
  absl::Duration flush_time = absl::Seconds(3);
};

// Posts a request to the collector and returns the collector's answer. Blocks for a bounded time.
using PostSpans =
    std::function<absl::StatusOr<PostAnswer>(const std::string& request, std::stop_token stop)>;

// Thread-safe.
class SpanExporter {
 public:
  // Calls OnSpans of the listeners when spans were exported or lost. `clock` and the listeners must
  // outlive the object.
  SpanExporter(SpanExporterOptions options, PostSpans post, Clock& clock,
               std::vector<StateListener*> listeners);
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;
  // Calls Stop if nobody has.
  ~SpanExporter();

  // Queues a span that has ended. Never blocks.
  void Add(TraceSpan span);

  // Sends the spans that wait, each request once, for at most `flush_time`, and drops the rest.
  // Spans that come later are dropped. Later calls do nothing.
  void Stop();

 private:
  void Loop();
  // Waits for the next spans to send and returns them; returns none if the exporter has stopped and
  // no spans wait.
  std::vector<TraceSpan> TakeBatch();
  void Send(const std::vector<TraceSpan>& batch);
  void Tell(const SpansOutcome& outcome) const;
  // Waits for `time` or until Stop is called; returns whether Stop was called.
  bool AwaitStop(absl::Duration time);

  const SpanExporterOptions options_;
  const PostSpans post_;
  Clock& clock_;  // the steady clock
  const std::vector<StateListener*> listeners_;
  std::stop_source stopping_;
  absl::Mutex mutex_;
  std::deque<TraceSpan> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Time due_ ABSL_GUARDED_BY(mutex_);  // when the spans that wait must be sent
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // whether the function Loop has ended
  std::thread thread_;
};

}  // namespace wan::server
