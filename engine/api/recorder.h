// The Recorder, through which all telemetry passes. Code opens spans and records samples. Sinks
// receive spans and samples: streamed events, stored reports, Prometheus, logs. No other code
// measures the time of stages.
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

// Facts about a denoising step, which the step's spans carry.
struct StepFacts {
  int step = 0;         // index of the step, from 0
  int total = 0;        // number of steps of the job
  double timestep = 0;  // timestep of the step, from 0 to 1000
  ExpertRole expert = ExpertRole::kOnly;
};

// A span that was just opened.
struct SpanStart {
  Stage stage;
  absl::Time start;
  std::shared_ptr<const StepFacts> step;  // null unless the stage is kStepLoading or kStepInference
};

// A part of a span, for example one forward of a step. Parts do not overlap.
struct SpanPart {
  std::string name;          // for example "forward_conditional", or a component's name
  double start_seconds = 0;  // seconds from the start of the span
  double seconds = 0;
  std::optional<uint64_t> bytes;  // bytes of the component, if one was loaded
  std::optional<double> flops;    // floating-point operations, if it is a forward
  // In a job that calibrates: TextConditioning::ChangeRatio after the forward.
  std::optional<double> change_ratio = std::nullopt;
};

// A span that was closed.
struct SpanRecord {
  Stage stage;
  absl::Time start;
  double seconds = 0;
  ResourceUsage usage;
  std::shared_ptr<const StepFacts> step;
  absl::Status status;          // the status with which the span was closed
  std::vector<SpanPart> parts;  // in the order in which they started
  // Null unless this is the step in which the job profiles a block.
  std::shared_ptr<const BlockProfile> block_profile;
};

// A value at one moment, for example the bytes that a component takes.
struct Sample {
  std::string name;  // the metric's name in Prometheus without prefix: "component_memory_bytes"
  double value = 0;
  std::map<std::string, std::string> labels;
};

// Receives telemetry. A Recorder may call a sink from any thread, but makes one call at a time.
// Implementations must return quickly, because the work waits for them, and must not throw.
class TelemetrySink {
 public:
  virtual ~TelemetrySink() = default;
  virtual void OnSpanStart(const SpanStart&) {}
  virtual void OnSpanEnd(const SpanRecord&) {}
  virtual void OnSample(const Sample&) {}
};

class Span;

// Thread-safe. Each job, and each loading of a model, has a Recorder of its own. The clock, the
// monitor and the sinks must outlive the Recorder.
class Recorder {
 public:
  Recorder(Clock& clock, DeviceMonitor& monitor, std::vector<TelemetrySink*> sinks);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Opens a span. Span::Finish closes it. If nobody calls Finish, the span's destructor closes it
  // with CANCELLED. `step` is set only for the spans of a denoising step.
  [[nodiscard]] Span StartSpan(Stage stage, std::shared_ptr<const StepFacts> step = nullptr);

  // Records a span that began at `start` and ends now, such as kQueueWait. The span has no resource
  // usage. `duration` is a separate argument, because somebody may have set the wall clock since
  // `start`.
  void RecordPast(Stage stage, absl::Time start, absl::Duration duration);

  // Passes a value to every sink.
  void Record(const Sample& sample);

 private:
  friend class Span;
  void Deliver(const SpanRecord& record);

  Clock& clock_;
  DeviceMonitor& monitor_;
  const std::vector<TelemetrySink*> sinks_;
  absl::Mutex mutex_;  // held while sinks are called, so that sinks get one call at a time
};

// Refers to an open span; can be moved.
class Span {
 public:
  Span(Span&&) noexcept;
  Span& operator=(Span&&) = delete;
  ~Span();

  // Closes the span with the given status, and returns that status. Later calls change nothing.
  absl::Status Finish(absl::Status status = absl::OkStatus());

  // Returns the seconds since the span was opened. Call this function and AddPart before Finish, on
  // the thread that will call Finish.
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
