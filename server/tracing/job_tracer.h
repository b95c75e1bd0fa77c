// Makes the trace spans of jobs (docs/operate/tracing.md):
//
//   generate MODEL              the job; its parent is the caller's span
//     Queue_Wait                once an attempt
//     Total_Execution           an attempt
//       T5_Encoding, Step_0_Inference, VAE_Decoding ...   the stages of its report
#pragma once

#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/tracing/span_exporter.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. Only jobs whose trace is sampled have spans. Spans never contain a prompt, an image
// or a label, which belong to the callers.
class JobTracer final : public StateListener {
 public:
  // `exporter` must outlive the object and its sinks.
  explicit JobTracer(SpanExporter& exporter) : exporter_(exporter) {}

  // Returns a factory of sinks that make the spans of an attempt. This object must outlive the
  // sinks.
  SinkFactory StageSinks();

  // Makes the span of a job that has ended, and the span of an attempt that was lost when an
  // earlier process ended.
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;

 private:
  SpanExporter& exporter_;
  absl::Mutex mutex_;
  // Jobs that were RUNNING in an earlier process and have not been requeued or ended since.
  std::set<std::string> lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
