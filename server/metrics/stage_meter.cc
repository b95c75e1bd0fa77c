#include "server/metrics/stage_meter.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/families.h"

namespace wan::server {
namespace {

// Names of the samples that the engine and JobRunner record (engine/api/recorder.h).
constexpr std::string_view kStopSeconds = "stop_seconds";
constexpr std::string_view kPlannedFlops = "planned_flops";

constexpr char kBetweenStages[] = "Other";

// The stages of an attempt, by precedence. While several stages are open, time counts for the stage
// that is first in this list: stages that use the device come before stages that wait or run in
// parallel.
constexpr std::array kByPrecedence = {StageKind::kStepInference,  StageKind::kLoraMerging,
                                      StageKind::kStepLoading,    StageKind::kT5Encoding,
                                      StageKind::kVaeEncoding,    StageKind::kVaeDecoding,
                                      StageKind::kTi2vPreprocess, StageKind::kT2vPreprocess,
                                      StageKind::kI2vPreprocess,  StageKind::kVideoEncoding};

// The bounds reach from a step of the smallest video to one of a long video on a slow machine. Each
// bound is 1.2 times the one before, so a quantile is wrong by at most a fifth.
const prometheus::Histogram::BucketBoundaries& StepBounds() {
  static const auto* const bounds =
      new prometheus::Histogram::BucketBoundaries(GrowingBounds(0.01, 600, 1.2));
  return *bounds;
}

// The bounds reach from tokenizing a prompt to a night in the queue (Queue_Wait).
const prometheus::Histogram::BucketBoundaries& StageBounds() {
  static const auto* const bounds =
      new prometheus::Histogram::BucketBoundaries(GrowingBounds(0.001, 100'000, 1.5));
  return *bounds;
}

// The buckets for the seconds from a stop request to the free device; the goal is 0.5 s.
const prometheus::Histogram::BucketBoundaries& StopBounds() {
  static const auto* const bounds =
      new prometheus::Histogram::BucketBoundaries(GrowingBounds(0.01, 60, 1.2));
  return *bounds;
}

// Whether the meter counts the stage's time. The meter does not count Queue_Wait, which is not part
// of an attempt.
bool IsPart(StageKind kind) {
  return std::find(kByPrecedence.begin(), kByPrecedence.end(), kind) != kByPrecedence.end();
}

const char* OutcomeOf(const absl::Status& status) {
  if (status.ok()) return "completed";
  return absl::IsCancelled(status) ? "stopped" : "failed";
}

}  // namespace

std::string ShapeLabels::LabelOf(const VideoShape& shape) {
  absl::MutexLock lock(&mutex_);
  if (!known_.contains(shape)) {
    if (known_.size() == kShapes) return "other";
    known_.insert(shape);
  }
  return absl::StrCat(shape.width, "x", shape.height, "x", shape.num_frames);
}

struct StageMeter::Families {
  explicit Families(prometheus::Registry& registry)
      : stage_seconds(HistogramFamily(registry, "wan_stage_seconds")),
        step_seconds(HistogramFamily(registry, "wan_step_seconds")),
        stop_seconds(HistogramFamily(registry, "wan_stop_seconds")),
        execution_seconds(CounterFamily(registry, "wan_execution_seconds_total")),
        attempt_seconds(CounterFamily(registry, "wan_attempt_seconds_total")),
        stage_flops(CounterFamily(registry, "wan_stage_flops_total")),
        step_flops(CounterFamily(registry, "wan_step_flops_total")) {}

  prometheus::Family<prometheus::Histogram>& stage_seconds;
  prometheus::Family<prometheus::Histogram>& step_seconds;
  prometheus::Family<prometheus::Histogram>& stop_seconds;
  prometheus::Family<prometheus::Counter>& execution_seconds;
  prometheus::Family<prometheus::Counter>& attempt_seconds;
  prometheus::Family<prometheus::Counter>& stage_flops;
  prometheus::Family<prometheus::Counter>& step_flops;
};

class StageMeter::Sink final : public TelemetrySink {
 public:
  Sink(StageMeter& meter, const SinkContext& context)
      : meter_(meter),
        model_(context.model),
        group_(context.group),
        quality_(context.quality),
        shape_(context.job.empty() ? std::string() : meter.shapes_.LabelOf(context.shape)) {}

  ~Sink() override {
    absl::MutexLock lock(&meter_.mutex_);
    Leave();
  }

  void OnSpanStart(const SpanStart& start) override {
    absl::MutexLock lock(&meter_.mutex_);
    const int64_t now = meter_.clock_.MonotonicNanos();
    if (start.stage.kind == StageKind::kTotalExecution) {
      began_ = counted_until_ = step_ended_ = stage_began_ = now;
      meter_.running_[group_] = this;
      return;
    }
    if (!IsPart(start.stage.kind)) return;
    CountUntil(now);
    ++open_[start.stage.kind];
    if (start.step != nullptr) {
      step_ = start.step->step;
      steps_ = start.step->total;
    }
    stage_began_ = now;
  }

  void OnSpanEnd(const SpanRecord& record) override {
    ObserveEnd(record);
    absl::MutexLock lock(&meter_.mutex_);
    const int64_t now = meter_.clock_.MonotonicNanos();
    if (record.stage.kind != StageKind::kTotalExecution && !IsPart(record.stage.kind)) return;
    CountUntil(now);
    stage_began_ = now;
    const auto open = open_.find(record.stage.kind);
    if (open != open_.end() && --open->second == 0) open_.erase(open);
    if (record.stage.kind == StageKind::kStepInference && record.status.ok()) {
      ++step_;
      step_ended_ = now;
    }
    if (record.stage.kind != StageKind::kTotalExecution) return;
    Leave();
    meter_.families_->attempt_seconds
        .Add({{"model", model_}, {"outcome", OutcomeOf(record.status)}})
        .Increment(absl::ToDoubleSeconds(absl::Nanoseconds(now - began_)));
  }

  void OnSample(const Sample& sample) override {
    if (sample.name == kStopSeconds) {
      meter_.families_->stop_seconds.Add({{"model", model_}}, StopBounds()).Observe(sample.value);
    } else if (sample.name == kPlannedFlops) {
      const std::optional<Stage> stage = ParseStage(sample.labels.at("stage"));
      if (stage.has_value()) planned_flops_[*stage] = sample.value;
    }
  }

  // Call Describe with the meter's lock held.
  InFlight Describe(int64_t now) const {
    return {group_,
            model_,
            quality_,
            step_,
            steps_,
            absl::Nanoseconds(now - began_),
            absl::Nanoseconds(now - step_ended_),
            std::string(StageNow()),
            absl::Nanoseconds(now - stage_began_)};
  }

 private:
  // Whether this sink belongs to the attempt that its device group is running. Call Runs, like
  // StageNow, with the meter's lock held.
  bool Runs() const {
    const auto running = meter_.running_.find(group_);
    return running != meter_.running_.end() && running->second == this;
  }
  void Leave() {
    if (Runs()) meter_.running_.erase(group_);
  }

  void ObserveEnd(const SpanRecord& record) {
    // Ignore failed stages, because their time is not representative.
    if (!record.status.ok()) return;
    Families& families = *meter_.families_;
    const prometheus::Labels stage = StageLabels(NameOf(record.stage.kind));
    families.stage_seconds.Add(stage, StageBounds()).Observe(record.seconds);
    const auto planned = planned_flops_.find(record.stage);
    const double flops = planned == planned_flops_.end() ? 0 : planned->second;
    if (flops > 0) families.stage_flops.Add(stage).Increment(flops);
    if (record.stage.kind != StageKind::kStepInference || record.step == nullptr) return;
    const prometheus::Labels step = {{"expert", std::string(NameOf(record.step->expert))},
                                     {"model", model_},
                                     {"quality", quality_},
                                     {"shape", shape_}};
    families.step_seconds.Add(step, StepBounds()).Observe(record.seconds);
    if (flops > 0) families.step_flops.Add(step).Increment(flops);
  }

  prometheus::Labels StageLabels(std::string_view stage) const {
    return {{"model", model_}, {"quality", quality_}, {"stage", std::string(stage)}};
  }

  std::string_view StageNow() const {
    for (const StageKind kind : kByPrecedence) {
      if (open_.contains(kind)) return NameOf(kind);
    }
    return kBetweenStages;
  }

  // Adds the time since the last call to the counter of the stage that is open. Call CountUntil
  // with the meter's lock held.
  void CountUntil(int64_t now) {
    if (!Runs()) return;
    const int64_t passed = now - std::exchange(counted_until_, now);
    if (passed <= 0) return;
    meter_.families_->execution_seconds.Add(StageLabels(StageNow()))
        .Increment(absl::ToDoubleSeconds(absl::Nanoseconds(passed)));
  }

  StageMeter& meter_;
  const std::string model_;
  const int group_;
  const std::string quality_;  // empty while a model is loaded
  const std::string shape_;    // label of the video's shape; empty while a model is loaded
  std::map<Stage, double> planned_flops_;
  // Scrapes read the following members, which the meter's lock guards. Times are in nanoseconds of
  // the steady clock.
  std::map<StageKind, int> open_;
  int step_ = 0;
  int steps_ = 0;
  int64_t began_ = 0;
  int64_t counted_until_ = 0;
  int64_t step_ended_ = 0;
  int64_t stage_began_ = 0;
};

StageMeter::StageMeter(prometheus::Registry& registry, Clock& clock)
    : clock_(clock), families_(std::make_unique<Families>(registry)) {}

StageMeter::~StageMeter() = default;

std::unique_ptr<TelemetrySink> StageMeter::NewSink(const SinkContext& context) {
  return std::make_unique<Sink>(*this, context);
}

void StageMeter::AddModel(const std::string& model) {
  families_->stop_seconds.Add({{"model", model}}, StopBounds());
}

std::vector<InFlight> StageMeter::Running() const {
  absl::MutexLock lock(&mutex_);
  std::vector<InFlight> running;
  for (const auto& [group, sink] : running_) {
    running.push_back(sink->Describe(clock_.MonotonicNanos()));
  }
  return running;
}

}  // namespace wan::server
