// Sends spans to a collector from a thread of its own, so that no job ever waits for one.
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
  // The resource attributes of this process, and its version.
  std::vector<SpanAttribute> resource;
  std::string version;
  // Most spans that wait; further ones are dropped.
  size_t capacity = 8192;
  // Most spans of one request. Fewer are sent when the first of them has waited for `interval`.
  size_t batch = 512;
  absl::Duration interval = absl::Seconds(2);
  // The time to a request's second attempt; it doubles with each further one up to `most_delay`. A
  // random part of up to a quarter is added, and it is never shorter than the collector asks for.
  absl::Duration first_delay = absl::Seconds(1);
  absl::Duration most_delay = absl::Seconds(30);
  // A request is given up when an attempt fails this long after the first one.
  absl::Duration most_age = absl::Minutes(1);
  // The time for which Stop goes on sending.
  absl::Duration flush_time = absl::Seconds(3);
};

// Posts a request and returns the collector's answer. Blocks for a bounded time.
using PostSpans =
    std::function<absl::StatusOr<PostAnswer>(const std::string& request, std::stop_token stop)>;

// Thread-safe.
class SpanExporter {
 public:
  // `clock` and the listeners, which hear OnSpans, must outlive the object.
  SpanExporter(SpanExporterOptions options, PostSpans post, Clock& clock,
               std::vector<StateListener*> listeners);
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;
  // Stops.
  ~SpanExporter();

  // Takes a span that has ended. Never blocks.
  void Add(TraceSpan span);

  // Sends what waits, each request once, for `flush_time` at most, and drops the rest. Later spans
  // are dropped. Idempotent.
  void Stop();

 private:
  void Loop();
  // Returns the next spans to send; none if there are none and the exporter stops.
  std::vector<TraceSpan> TakeBatch();
  void Send(const std::vector<TraceSpan>& batch);
  void Tell(const SpansOutcome& outcome) const;
  // Waits for `time` or until Stop; returns whether Stop was called.
  bool AwaitStop(absl::Duration time);

  const SpanExporterOptions options_;
  const PostSpans post_;
  Clock& clock_;  // the steady one
  const std::vector<StateListener*> listeners_;
  std::stop_source stopping_;
  absl::Mutex mutex_;
  std::deque<TraceSpan> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Time due_ ABSL_GUARDED_BY(mutex_);  // time to send what waits
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the loop
  std::thread thread_;
};

}  // namespace wan::server
