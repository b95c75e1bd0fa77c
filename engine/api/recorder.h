// The one source of telemetry. Code opens spans and records samples; sinks (streamed events, the
// stored report, Prometheus, logs) receive them. No stage is timed anywhere else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"

namespace wan {

// Stage names of the benchmark reports.
inline constexpr std::string_view kStageModelInitialization = "Model_Initialization";
// Inside of Step_N_Loading: weights on the device become those with the job's LoRAs, or without the
// last job's.
inline constexpr std::string_view kStageLoraMerging = "LoRA_Merging";
inline constexpr std::string_view kStageT5Encoding = "T5_Encoding";
inline constexpr std::string_view kStageVaeEncoding = "VAE_Encoding";
inline constexpr std::string_view kStageVaeDecoding = "VAE_Decoding";
inline constexpr std::string_view kStageVideoEncoding = "Video_Encoding";
inline constexpr std::string_view kStageQueueWait = "Queue_Wait";
inline constexpr std::string_view kStageTotalExecution = "Total_Execution";
// "TI2V_Preprocess" for family "ti2v-5b", "T2V_..." for "t2v-...", "I2V_..." for "i2v-...".
std::string PreprocessStage(std::string_view family);
std::string StepLoadingStage(int step);    // "Step_3_Loading"
std::string StepInferenceStage(int step);  // "Step_3_Inference"
// The name with the step number dropped: "Step_3_Inference" -> "Step_Inference". For metric labels.
std::string StageFamily(std::string_view stage);

// Facts about a denoising step that belong to its span.
struct StepFacts {
  int step = 0;  // 0 is the first
  int total = 0;
  double timestep = 0;
  std::string expert;  // "only", "high", "low"
};

struct SpanStart {
  std::string stage;
  absl::Time start;
  std::shared_ptr<const StepFacts> step;  // null outside of step inference and loading
};

// A finished span.
struct SpanRecord {
  std::string stage;
  absl::Time start;
  double seconds = 0;
  ResourceUsage usage;
  std::shared_ptr<const StepFacts> step;
  absl::Status status;  // how it ended
};

// One value at one moment, for example bytes of a model's component.
struct Sample {
  std::string name;  // in Prometheus terms, without the prefix: "component_memory_bytes"
  double value = 0;
  std::map<std::string, std::string> labels;
};

// Called from any thread, one call at a time per Recorder. Must return quickly and must not throw.
class TelemetrySink {
 public:
  virtual ~TelemetrySink() = default;
  virtual void OnSpanStart(const SpanStart&) {}
  virtual void OnSpanEnd(const SpanRecord&) {}
  virtual void OnSample(const Sample&) {}
};

class Span;

// Thread-safe. One per job (or per model load); clock, monitor and sinks must outlive it.
class Recorder {
 public:
  Recorder(Clock& clock, DeviceMonitor& monitor, std::vector<TelemetrySink*> sinks);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Opens a span, closed by its destructor or Finish.
  [[nodiscard]] Span StartSpan(std::string_view stage,
                               std::shared_ptr<const StepFacts> step = nullptr);

  // A span that began in the past and ends now, such as Queue_Wait: it has a duration but no usage.
  void RecordPast(std::string_view stage, absl::Time start);

  void Record(const Sample& sample);

 private:
  friend class Span;
  void Deliver(const SpanRecord& record);

  Clock& clock_;
  DeviceMonitor& monitor_;
  const std::vector<TelemetrySink*> sinks_;
  absl::Mutex mutex_;  // one sink call at a time
};

// Movable handle of an open span.
class Span {
 public:
  Span(Span&&) noexcept;
  Span& operator=(Span&&) = delete;
  ~Span();

  // Closes the span with a status; later calls do nothing. Returns the status for chaining.
  absl::Status Finish(absl::Status status = absl::OkStatus());

 private:
  friend class Recorder;
  Span(Recorder* recorder, SpanRecord record, int64_t start_nanos,
       std::unique_ptr<ResourceProbe> probe);

  Recorder* recorder_;  // null once closed or moved from
  SpanRecord record_;
  int64_t start_nanos_;
  std::unique_ptr<ResourceProbe> probe_;
};

}  // namespace wan
