#include "engine/api/recorder.h"

#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace wan {
namespace {

// Telemetry is optional: a sink or a probe that throws costs what it would have told, and not the
// job, nor the process, where a span ends while another exception is on its way.
template <typename Work>
void IgnoreFailure(const Work& work) {
  try {
    work();
  } catch (...) {
  }
}

// `what` is done with every sink.
template <typename What>
void Tell(const std::vector<TelemetrySink*>& sinks, const What& what) {
  for (TelemetrySink* const sink : sinks) {
    IgnoreFailure([&] { what(*sink); });
  }
}

}  // namespace

std::string PreprocessStage(FamilyId family) {
  const std::string_view name = NameOf(family);
  const std::string kind(name.substr(0, name.find('-')));
  return absl::StrCat(absl::AsciiStrToUpper(kind), "_Preprocess");
}

std::string StepLoadingStage(int step) { return absl::StrCat("Step_", step, "_Loading"); }

std::string StepInferenceStage(int step) { return absl::StrCat("Step_", step, "_Inference"); }

std::string StageFamily(std::string_view stage) {
  constexpr std::string_view kStep = "Step_";
  if (stage.substr(0, kStep.size()) != kStep) return std::string(stage);
  size_t end = kStep.size();
  while (end < stage.size() && absl::ascii_isdigit(static_cast<unsigned char>(stage[end]))) ++end;
  if (end == kStep.size() || end == stage.size() || stage[end] != '_') return std::string(stage);
  return std::string(kStep) + std::string(stage.substr(end + 1));
}

Recorder::Recorder(Clock& clock, DeviceMonitor& monitor, std::vector<TelemetrySink*> sinks)
    : clock_(clock), monitor_(monitor), sinks_(std::move(sinks)) {}

Span Recorder::StartSpan(std::string_view stage, std::shared_ptr<const StepFacts> step) {
  SpanRecord record;
  record.stage = std::string(stage);
  record.start = clock_.Now();
  record.step = std::move(step);
  {
    absl::MutexLock lock(&mutex_);
    Tell(sinks_, [&](TelemetrySink& sink) {
      sink.OnSpanStart({record.stage, record.start, record.step});
    });
  }
  std::unique_ptr<ResourceProbe> probe;
  IgnoreFailure([&] { probe = monitor_.StartProbe(); });
  // The clock is read last, so that what the sinks did with the start is not counted as the
  // stage's.
  return Span(this, std::move(record), clock_.MonotonicNanos(), std::move(probe));
}

void Recorder::RecordPast(std::string_view stage, absl::Time start) {
  SpanRecord record;
  record.stage = std::string(stage);
  record.start = start;
  record.seconds = absl::ToDoubleSeconds(clock_.Now() - start);
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
