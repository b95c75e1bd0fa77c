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
  // The resource attributes of this process, and the server's version.
  std::vector<SpanAttribute> resource;
  std::string version;
  // Most waiting spans; further ones are dropped.
  size_t capacity = 8192;
  // Most spans of one request. Fewer are sent when the oldest has waited for `interval`.
  size_t batch = 512;
  absl::Duration interval = absl::Seconds(2);
  // Delay before a request's second attempt; doubles with each further attempt up to `most_delay`.
  // Up to a quarter is added at random, and the collector's Retry-After is respected.
  absl::Duration first_delay = absl::Seconds(1);
  absl::Duration most_delay = absl::Seconds(30);
  // A request is given up when an attempt fails this long after the first one.
  absl::Duration most_age = absl::Minutes(1);
  // Most time for which Stop continues sending.
  absl::Duration flush_time = absl::Seconds(3);
};

// Posts a request and returns the collector's answer. Blocks for a bounded time.
using PostSpans =
    std::function<absl::StatusOr<PostAnswer>(const std::string& request, std::stop_token stop)>;

// Thread-safe.
class SpanExporter {
 public:
  // Calls OnSpans of the listeners. `clock` and listeners must outlive the object.
  SpanExporter(SpanExporterOptions options, PostSpans post, Clock& clock,
               std::vector<StateListener*> listeners);
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;
  // Calls Stop.
  ~SpanExporter();

  // Queues an ended span. Never blocks.
  void Add(TraceSpan span);

  // Sends the waiting spans, each request once, for at most `flush_time`, and drops the rest. Later
  // spans are dropped. Idempotent.
  void Stop();

 private:
  void Loop();
  // Waits for the next spans to send and returns them; empty if the exporter has stopped and no
  // spans wait.
  std::vector<TraceSpan> TakeBatch();
  void Send(const std::vector<TraceSpan>& batch);
  void Tell(const SpansOutcome& outcome) const;
  // Waits for `time` or until Stop; returns whether Stop was called.
  bool AwaitStop(absl::Duration time);

  const SpanExporterOptions options_;
  const PostSpans post_;
  Clock& clock_;  // the steady clock
  const std::vector<StateListener*> listeners_;
  std::stop_source stopping_;
  absl::Mutex mutex_;
  std::deque<TraceSpan> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Time due_ ABSL_GUARDED_BY(mutex_);  // time to send the waiting spans
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // whether Loop has ended
  std::thread thread_;
};

}  // namespace wan::server
