#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "server/conversion/convert.h"
#include "server/conversion/names.h"
#include "server/metrics/gauges.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

// From a prompt's tokens (1 ms) to a long video on a slow machine (1 h).
const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,  1,    2.5,
    5,     10,     20,    30,   60,    120,  300, 600,  1200, 1800, 3600};

// The engine's sample of a stopped job.
constexpr std::string_view kStopSeconds = "stop_seconds";

// Labels of wan_device_lost.
constexpr char kLostByError[] = "error";
constexpr char kLostByCanary[] = "canary";

struct FinalState {
  wan::v1::JobState state;
  const char* label;
};
constexpr FinalState kFinalStates[] = {{wan::v1::JOB_STATE_COMPLETED, "completed"},
                                       {wan::v1::JOB_STATE_FAILED, "failed"},
                                       {wan::v1::JOB_STATE_CANCELLED, "cancelled"}};

const char* ResultOf(WebhookOutcome::Kind kind) {
  switch (kind) {
    case WebhookOutcome::Kind::kDelivered:
      return "delivered";
    case WebhookOutcome::Kind::kRetried:
      return "retried";
    case WebhookOutcome::Kind::kGivenUp:
      break;
  }
  return "given_up";
}

const char* NameOf(RetentionReason reason) {
  switch (reason) {
    case RetentionReason::kAge:
      return "age";
    case RetentionReason::kBytes:
      return "bytes";
    case RetentionReason::kCount:
      return "count";
  }
  return "";
}

}  // namespace

// Shared with MetricsServer, which may collect while Metrics is destroyed.
struct Metrics::Families final : prometheus::Collectable {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Histogram>& stage_seconds =
      prometheus::BuildHistogram()
          .Name("wan_stage_seconds")
          .Help("Wall seconds of stages that ended well, without the step's number in the name.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& step_seconds =
      prometheus::BuildHistogram()
          .Name("wan_step_seconds")
          .Help("Wall seconds of one denoising step, by expert.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& stop_seconds =
      prometheus::BuildHistogram()
          .Name("wan_stop_seconds")
          .Help("Seconds from the request that stopped a running job until its device was free.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& job_seconds =
      prometheus::BuildHistogram()
          .Name("wan_job_seconds")
          .Help("Wall seconds from a job's acceptance to its end, by how it ended.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& savepoint_seconds =
      prometheus::BuildHistogram()
          .Name("wan_savepoint_seconds")
          .Help("Seconds in which a job's savepoint was written, beside its steps.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& jobs_total =
      prometheus::BuildCounter()
          .Name("wan_jobs_total")
          .Help("Jobs that ended since the server started, by how they ended.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& webhooks_total =
      prometheus::BuildCounter()
          .Name("wan_webhook_attempts_total")
          .Help("Attempts to report a job's end since the server started, by how they went.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& removed_total =
      prometheus::BuildCounter()
          .Name("wan_retention_removed_total")
          .Help(
              "Ended jobs that the retention removed (jobs), or whose files alone it removed "
              "(files), by the limit that they exceeded.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& removed_bytes =
      prometheus::BuildCounter()
          .Name("wan_retention_removed_bytes_total")
          .Help("Bytes of what the retention removed, by the limit that it exceeded.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& device_lost =
      prometheus::BuildGauge()
          .Name("wan_device_lost")
          .Help(
              "1 from the loss of the device until the process ends, by how it was found: an error "
              "of the driver, or a canary that failed; else 0.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& build_info =
      prometheus::BuildGauge()
          .Name("wan_build_info")
          .Help("Always 1; the labels show the version, the device and the dtype.")
          .Register(registry);

  mutable absl::Mutex mutex;
  std::function<MetricsSnapshot()> source ABSL_GUARDED_BY(mutex);

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families = registry.Collect();
    absl::MutexLock lock(&mutex);
    if (source) {
      for (auto& family : GaugesOf(source())) families.push_back(std::move(family));
    }
    return families;
  }
};

class Metrics::StageSink final : public TelemetrySink {
 public:
  StageSink(Families& families, std::string model)
      : families_(families), model_(std::move(model)) {}

  void OnSpanEnd(const SpanRecord& record) override {
    // A stage that failed did not take its full time.
    if (!record.status.ok()) return;
    families_.stage_seconds
        .Add({{"stage", std::string(NameOf(record.stage.kind))}, {"model", model_}}, kSeconds)
        .Observe(record.seconds);
    if (record.stage.kind == StageKind::kStepInference && record.step != nullptr) {
      families_.step_seconds
          .Add({{"model", model_}, {"expert", std::string(NameOf(record.step->expert))}}, kSeconds)
          .Observe(record.seconds);
    }
  }

  void OnSample(const Sample& sample) override {
    if (sample.name != kStopSeconds) return;
    families_.stop_seconds.Add({{"model", model_}}, kSeconds).Observe(sample.value);
  }

 private:
  Families& families_;
  const std::string model_;
};

Metrics::Metrics(const BuildInfo& build) : families_(std::make_shared<Families>()) {
  families_->build_info
      .Add({{"version", build.version}, {"device", build.device}, {"dtype", build.dtype}})
      .Set(1);
  for (const auto kind : {WebhookOutcome::Kind::kDelivered, WebhookOutcome::Kind::kRetried,
                          WebhookOutcome::Kind::kGivenUp}) {
    families_->webhooks_total.Add({{"result", ResultOf(kind)}});
  }
  for (const char* const cause : {kLostByError, kLostByCanary}) {
    families_->device_lost.Add({{"cause", cause}}).Set(0);
  }
  // At 0, so that rate() sees their first increment.
  for (const char* const what : {"jobs", "files"}) {
    for (const RetentionReason reason :
         {RetentionReason::kAge, RetentionReason::kBytes, RetentionReason::kCount}) {
      families_->removed_total.Add({{"what", what}, {"reason", NameOf(reason)}});
      families_->removed_bytes.Add({{"what", what}, {"reason", NameOf(reason)}});
    }
  }
}

Metrics::~Metrics() { SetSource(nullptr); }

void Metrics::SetSource(std::function<MetricsSnapshot()> source) {
  absl::MutexLock lock(&families_->mutex);
  families_->source = std::move(source);
}

SinkFactory Metrics::StageSinks() {
  return [families = families_.get()](const SinkContext& context) {
    return std::make_unique<StageSink>(*families, context.model);
  };
}

void Metrics::OnJobState(const wan::v1::Job& job, wan::v1::JobState /*previous*/) {
  for (const FinalState& final : kFinalStates) {
    if (final.state != job.state()) continue;
    const prometheus::Labels labels = {{"model", job.request().model()}, {"state", final.label}};
    families_->jobs_total.Add(labels).Increment();
    // Negative if the wall clock was set back meanwhile.
    const absl::Duration taken = ToTime(job.end_time()) - ToTime(job.create_time());
    families_->job_seconds.Add(labels, kSeconds)
        .Observe(absl::ToDoubleSeconds(std::max(taken, absl::ZeroDuration())));
  }
}

void Metrics::OnModelState(const wan::v1::Model& model) {
  // Labels stay for ever, so only what could be loaded gets any.
  if (model.state() != wan::v1::MODEL_STATE_READY) return;
  // Create the counters at 0, so that rate() sees their first increment.
  for (const FinalState& final : kFinalStates) {
    families_->jobs_total.Add(
        {{"model", std::string(BareModelName(model.name()))}, {"state", final.label}});
  }
}

void Metrics::OnDeviceLost(DeviceLoss cause, const absl::Status& /*problem*/) {
  const char* const label = cause == DeviceLoss::kCanary ? kLostByCanary : kLostByError;
  families_->device_lost.Add({{"cause", label}}).Set(1);
}

void Metrics::OnSavepoint(const wan::v1::Job& job, int /*steps_done*/, double seconds) {
  families_->savepoint_seconds.Add({{"model", job.request().model()}}, kSeconds).Observe(seconds);
}

void Metrics::OnWebhook(const WebhookOutcome& outcome) {
  families_->webhooks_total.Add({{"result", ResultOf(outcome.kind)}}).Increment();
}

void Metrics::OnRetention(const RetentionRound& round) {
  for (const RetentionRound::Removed& removed : round.removed) {
    const prometheus::Labels labels = {{"what", removed.files_only ? "files" : "jobs"},
                                       {"reason", NameOf(removed.reason)}};
    families_->removed_total.Add(labels).Increment(static_cast<double>(removed.jobs));
    families_->removed_bytes.Add(labels).Increment(static_cast<double>(removed.bytes));
  }
}

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const { return families_; }

}  // namespace wan::server
