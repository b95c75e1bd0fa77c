// All telemetry passes through the Recorder. Code opens spans and records samples; sinks (streamed
// events, stored reports, Prometheus, logs) receive them. Stages are timed nowhere else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"
#include "engine/api/model_parts.h"
#include "engine/api/operator_work.h"
#include "engine/api/stage.h"

namespace wan {

// Facts about a denoising step, carried by the step's spans.
struct StepFacts {
  int step = 0;         // 0 is the first
  int total = 0;        // number of steps of the job
  double timestep = 0;  // 0 to 1000
  ExpertRole expert = ExpertRole::kOnly;
};

// A span that has just been opened.
struct SpanStart {
  Stage stage;
  absl::Time start;
  std::shared_ptr<const StepFacts> step;  // null except in kStepLoading and kStepInference
};

// A part of a span, for example one forward of a step. Parts do not overlap.
struct SpanPart {
  std::string name;          // "forward_conditional", or a component's name
  double start_seconds = 0;  // seconds from the start of the span
  double seconds = 0;
  std::optional<uint64_t> bytes;  // bytes of a loaded component
  std::optional<double> flops;    // floating-point operations of a forward
};

// A finished span.
struct SpanRecord {
  Stage stage;
  absl::Time start;
  double seconds = 0;
  ResourceUsage usage;
  std::shared_ptr<const StepFacts> step;
  absl::Status status;          // status with which it was closed
  std::vector<SpanPart> parts;  // in the order of their starts
  // Null except for the step in which a job profiles a block.
  std::shared_ptr<const BlockProfile> block_profile;
};

// A value at one moment, for example the bytes of a component.
struct Sample {
  std::string name;  // Prometheus name without prefix: "component_memory_bytes"
  double value = 0;
  std::map<std::string, std::string> labels;
};

// Receives telemetry. A Recorder calls each sink from any thread, one call at a time.
// Implementations must return quickly, because the work waits, and must not throw.
class TelemetrySink {
 public:
  virtual ~TelemetrySink() = default;
  virtual void OnSpanStart(const SpanStart&) {}
  virtual void OnSpanEnd(const SpanRecord&) {}
  virtual void OnSample(const Sample&) {}
};

class Span;

// Thread-safe. Each job and each model load has its own Recorder. Clock, monitor and sinks must
// outlive it.
class Recorder {
 public:
  Recorder(Clock& clock, DeviceMonitor& monitor, std::vector<TelemetrySink*> sinks);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Opens a span. Span::Finish closes it; without Finish, the span's destructor closes it with
  // CANCELLED. `step` is for spans of a denoising step.
  [[nodiscard]] Span StartSpan(Stage stage, std::shared_ptr<const StepFacts> step = nullptr);

  // Records a span that began in the past and ends now, such as kQueueWait. It has no resource
  // usage. `duration` is given separately, because the wall clock may have been set since `start`.
  void RecordPast(Stage stage, absl::Time start, absl::Duration duration);

  // Passes a value to every sink.
  void Record(const Sample& sample);

 private:
  friend class Span;
  void Deliver(const SpanRecord& record);

  Clock& clock_;
  DeviceMonitor& monitor_;
  const std::vector<TelemetrySink*> sinks_;
  absl::Mutex mutex_;  // serialises calls of sinks
};

// Movable handle of an open span.
class Span {
 public:
  Span(Span&&) noexcept;
  Span& operator=(Span&&) = delete;
  ~Span();

  // Closes the span with a status and returns that. Later calls change nothing.
  absl::Status Finish(absl::Status status = absl::OkStatus());

  // Returns the seconds since the start. Call this and AddPart before Finish, on the thread that
  // will call Finish.
  double Seconds() const;
  void AddPart(SpanPart part) { record_.parts.push_back(std::move(part)); }
  void SetBlockProfile(std::shared_ptr<const BlockProfile> profile) {
    record_.block_profile = std::move(profile);
  }

 private:
  friend class Recorder;
  Span(Recorder* recorder, SpanRecord record, int64_t start_nanos,
       std::unique_ptr<ResourceProbe> probe);

  Recorder* recorder_;  // null once the span was closed or moved from
  SpanRecord record_;
  int64_t start_nanos_;
  std::unique_ptr<ResourceProbe> probe_;
};

}  // namespace wan
