#include "engine/api/recorder.h"

#include <algorithm>
#include <utility>

namespace wan {
namespace {

// Telemetry is optional. If a sink or probe throws, its data is lost, but the job goes on. This
// also keeps the process alive if a sink throws while another exception unwinds the stack.
template <typename Work>
void IgnoreFailure(const Work& work) {
  try {
    work();
  } catch (...) {
  }
}

template <typename What>
void Tell(const std::vector<TelemetrySink*>& sinks, const What& what) {
  for (TelemetrySink* const sink : sinks) {
    IgnoreFailure([&] { what(*sink); });
  }
}

}  // namespace

Recorder::Recorder(Clock& clock, DeviceMonitor& monitor, std::vector<TelemetrySink*> sinks)
    : clock_(clock), monitor_(monitor), sinks_(std::move(sinks)) {}

Span Recorder::StartSpan(Stage stage, std::shared_ptr<const StepFacts> step) {
  SpanRecord record{.stage = stage, .start = clock_.Now(), .step = std::move(step)};
  {
    absl::MutexLock lock(&mutex_);
    Tell(sinks_, [&](TelemetrySink& sink) {
      sink.OnSpanStart({record.stage, record.start, record.step});
    });
  }
  std::unique_ptr<ResourceProbe> probe;
  IgnoreFailure([&] { probe = monitor_.StartProbe(); });
  // Read the clock last. If the clock were read earlier, the stage would include the time that the
  // sinks take at its start.
  return Span(this, std::move(record), clock_.MonotonicNanos(), std::move(probe));
}

void Recorder::RecordPast(Stage stage, absl::Time start, absl::Duration duration) {
  SpanRecord record{.stage = stage, .start = start};
  record.seconds = absl::ToDoubleSeconds(duration);
  absl::MutexLock lock(&mutex_);
  Tell(sinks_, [&](TelemetrySink& sink) {
    sink.OnSpanStart({record.stage, record.start, nullptr});
  });
  Tell(sinks_, [&](TelemetrySink& sink) { sink.OnSpanEnd(record); });
}

void Recorder::Record(const Sample& sample) {
  absl::MutexLock lock(&mutex_);
  Tell(sinks_, [&](TelemetrySink& sink) { sink.OnSample(sample); });
}

void Recorder::Deliver(const SpanRecord& record) {
  absl::MutexLock lock(&mutex_);
  Tell(sinks_, [&](TelemetrySink& sink) { sink.OnSpanEnd(record); });
}

Span::Span(Recorder* recorder, SpanRecord record, int64_t start_nanos,
           std::unique_ptr<ResourceProbe> probe)
    : recorder_(recorder),
      record_(std::move(record)),
      start_nanos_(start_nanos),
      probe_(std::move(probe)) {}

Span::Span(Span&& other) noexcept
    : recorder_(std::exchange(other.recorder_, nullptr)),
      record_(std::move(other.record_)),
      start_nanos_(other.start_nanos_),
      probe_(std::move(other.probe_)) {}

Span::~Span() {
  if (recorder_ != nullptr)
    Finish(absl::CancelledError("the span was left without a result")).IgnoreError();
}

double Span::Seconds() const {
  return static_cast<double>(recorder_->clock_.MonotonicNanos() - start_nanos_) * 1e-9;
}

absl::Status Span::Finish(absl::Status status) {
  Recorder* const recorder = std::exchange(recorder_, nullptr);
  if (recorder == nullptr) return status;
  record_.seconds = static_cast<double>(recorder->clock_.MonotonicNanos() - start_nanos_) * 1e-9;
  if (probe_ != nullptr) IgnoreFailure([&] { record_.usage = probe_->Finish(); });
  probe_.reset();
  record_.status = status;
  recorder->Deliver(record_);
  return status;
}

}  // namespace wan
