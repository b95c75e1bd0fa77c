#include "server/metrics/metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/conversion/names.h"
#include "server/metrics/exposition.h"
#include "server/metrics/families.h"
#include "server/metrics/gauges.h"
#include "server/metrics/job_meter.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

// Values of the label `cause` of the metric wan_device_lost.
constexpr char kLostByError[] = "error";
constexpr char kLostByCanary[] = "canary";

// The bounds, for savepoints, transactions and requests to the object store, reach from a write to
// the page cache to a disk that hangs.
const prometheus::Histogram::BucketBoundaries& DiskBounds() {
  static const auto* const bounds =
      new prometheus::Histogram::BucketBoundaries(GrowingBounds(0.0005, 120, 1.5));
  return *bounds;
}

// The bounds reach from a call answered from memory to a stream of a day.
const prometheus::Histogram::BucketBoundaries& CallBounds() {
  static const auto* const bounds =
      new prometheus::Histogram::BucketBoundaries(GrowingBounds(0.0005, 100'000, 2));
  return *bounds;
}

// The status codes that the OpenAI video API (server/http) answers with; their series are created
// with 0.
constexpr int kHttpCodes[] = {200, 206, 400, 401, 403, 404, 405, 409,
                              411, 413, 416, 429, 431, 500, 503, 504};
constexpr int kHttpOk = 200;
// The label for paths that the server does not know.
constexpr char kOtherRoute[] = "other";

bool IsGrpc(std::string_view path) { return path.starts_with('/'); }

prometheus::Labels GrpcLabels(std::string_view path, absl::StatusCode code) {
  return {{"code", absl::StatusCodeToString(code)}, {"method", std::string(path.substr(1))}};
}

prometheus::Labels HttpLabels(std::string_view route, int code) {
  return {{"code", absl::StrCat(code)},
          {"route", route.empty() ? std::string(kOtherRoute) : std::string(route)}};
}

constexpr char kSpansExported[] = "exported";
constexpr char kSpansFailed[] = "failed";
constexpr char kSpansDropped[] = "dropped";

constexpr char kSent[] = "sent";
constexpr char kReceived[] = "received";

prometheus::Labels ObjectLabels(ObjectOperation operation, ObjectOutcome outcome) {
  return {{"operation", std::string(NameOf(operation))}, {"outcome", std::string(NameOf(outcome))}};
}

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

// The families are a separate object, because MetricsServer may collect them after Metrics is
// destroyed.
struct Metrics::Families final : ScrapeSource {
  explicit Families(Clock& clock) : stages(registry, clock), jobs(registry, exemplars, clock) {}

  prometheus::Registry registry;
  Exemplars exemplars;
  StageMeter stages;
  JobMeter jobs;
  prometheus::Family<prometheus::Histogram>& savepoint_seconds =
      HistogramFamily(registry, "wan_savepoint_seconds");
  prometheus::Family<prometheus::Histogram>& store_write_seconds =
      HistogramFamily(registry, "wan_store_write_seconds");
  prometheus::Family<prometheus::Histogram>& call_seconds =
      HistogramFamily(registry, "wan_grpc_call_seconds");
  prometheus::Family<prometheus::Histogram>& http_seconds =
      HistogramFamily(registry, "wan_http_request_seconds");
  prometheus::Family<prometheus::Counter>& calls_total =
      CounterFamily(registry, "wan_grpc_calls_total");
  prometheus::Family<prometheus::Counter>& http_total =
      CounterFamily(registry, "wan_http_requests_total");
  prometheus::Family<prometheus::Counter>& webhooks_total =
      CounterFamily(registry, "wan_webhook_attempts_total");
  prometheus::Family<prometheus::Counter>& spans_total =
      CounterFamily(registry, "wan_trace_spans_total");
  prometheus::Family<prometheus::Counter>& removed_total =
      CounterFamily(registry, "wan_retention_removed_total");
  prometheus::Family<prometheus::Counter>& removed_bytes =
      CounterFamily(registry, "wan_retention_removed_bytes_total");
  prometheus::Family<prometheus::Counter>& object_requests =
      CounterFamily(registry, "wan_object_requests_total");
  prometheus::Family<prometheus::Histogram>& object_seconds =
      HistogramFamily(registry, "wan_object_request_seconds");
  prometheus::Family<prometheus::Counter>& object_bytes =
      CounterFamily(registry, "wan_object_bytes_total");
  prometheus::Family<prometheus::Gauge>& device_lost = GaugeFamily(registry, "wan_device_lost");
  prometheus::Family<prometheus::Gauge>& build_info = GaugeFamily(registry, "wan_build_info");

  mutable absl::Mutex mutex;
  std::function<MetricsSnapshot()> source ABSL_GUARDED_BY(mutex);

  Scrape Collect() const override {
    Scrape scrape;
    // Read the exemplars first; then the histograms include all of their observations.
    scrape.exemplars = exemplars.Latest();
    std::vector<prometheus::MetricFamily>& families = scrape.families;
    families = registry.Collect();
    // Leave out families without observations.
    std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
    absl::MutexLock lock(&mutex);
    if (source) {
      MetricsSnapshot snapshot = source();
      snapshot.in_flight = stages.Running();
      snapshot.oldest_queued = jobs.OldestQueued();
      for (auto& family : GaugesOf(snapshot)) families.push_back(std::move(family));
    }
    return scrape;
  }
};

Metrics::Metrics(const BuildInfo& build, Clock& clock)
    : families_(std::make_shared<Families>(clock)) {
  families_->build_info
      .Add({{"version", build.version},
            {"revision", build.revision},
            {"libraries", build.libraries},
            {"device", build.device},
            {"dtype", build.dtype},
            {"grpc", build.grpc}})
      .Set(1);
  for (const char* const result : {kSpansExported, kSpansFailed, kSpansDropped}) {
    families_->spans_total.Add({{"result", result}});
  }
  for (const auto kind : {WebhookOutcome::Kind::kDelivered, WebhookOutcome::Kind::kRetried,
                          WebhookOutcome::Kind::kGivenUp}) {
    families_->webhooks_total.Add({{"result", ResultOf(kind)}});
  }
  for (const char* const cause : {kLostByError, kLostByCanary}) {
    families_->device_lost.Add({{"cause", cause}}).Set(0);
  }
  // Create the series with 0, so that rate() sees their first increment.
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
    return families->stages.NewSink(context);
  };
}

void Metrics::OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) {
  families_->jobs.OnJobState(job, previous);
}

void Metrics::OnJobCancelled(const wan::v1::Job& job, StopCause cause) {
  families_->jobs.OnJobCancelled(job, cause);
}

void Metrics::OnJobRequeued(const wan::v1::Job& job, RequeueCause cause) {
  families_->jobs.OnJobRequeued(job, cause);
}

void Metrics::OnEstimateMet(const wan::v1::Job& job, const EstimateMet& met) {
  families_->jobs.OnEstimateMet(job, met);
}

void Metrics::OnJobsRejected(const absl::Status& problem, int jobs) {
  families_->jobs.OnJobsRejected(problem, jobs);
}

void Metrics::OnModelState(const wan::v1::Model& model) {
  // A series is never removed, so only models that were loaded get one.
  if (model.state() != wan::v1::MODEL_STATE_READY) return;
  const std::string name(BareModelName(model.name()));
  families_->jobs.AddModel(name);
  families_->stages.AddModel(name);
}

void Metrics::OnStoreWrite(std::string_view operation, absl::Duration taken) {
  families_->store_write_seconds.Add({{"operation", std::string(operation)}}, DiskBounds())
      .Observe(absl::ToDoubleSeconds(taken));
}

void Metrics::AddMethod(std::string_view path) {
  // Create histograms only for OK: one for every code would make thousands of series.
  if (IsGrpc(path)) {
    for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
      families_->calls_total.Add(GrpcLabels(path, static_cast<absl::StatusCode>(code)));
    }
    families_->call_seconds.Add(GrpcLabels(path, absl::StatusCode::kOk), CallBounds());
    return;
  }
  for (const int code : kHttpCodes) {
    families_->http_total.Add(HttpLabels(path, code));
    families_->http_total.Add(HttpLabels(kOtherRoute, code));
  }
  families_->http_seconds.Add(HttpLabels(path, kHttpOk), CallBounds());
}

void Metrics::OnCall(std::string_view path, const absl::Status& status, absl::Duration taken) {
  // Calls over HTTP are counted by OnHttpAnswer.
  if (!IsGrpc(path)) return;
  const prometheus::Labels labels = GrpcLabels(path, status.code());
  families_->calls_total.Add(labels).Increment();
  families_->call_seconds.Add(labels, CallBounds()).Observe(absl::ToDoubleSeconds(taken));
}

void Metrics::OnHttpAnswer(std::string_view route, int code, absl::Duration taken) {
  const prometheus::Labels labels = HttpLabels(route, code);
  families_->http_total.Add(labels).Increment();
  families_->http_seconds.Add(labels, CallBounds()).Observe(absl::ToDoubleSeconds(taken));
}

void Metrics::OnDeviceLost(DeviceLoss cause, const absl::Status& /*problem*/) {
  const char* const label = cause == DeviceLoss::kCanary ? kLostByCanary : kLostByError;
  families_->device_lost.Add({{"cause", label}}).Set(1);
}

void Metrics::OnSavepoint(const wan::v1::Job& job, int /*steps_done*/, double seconds) {
  families_->savepoint_seconds.Add({{"model", job.request().model()}}, DiskBounds())
      .Observe(seconds);
}

void Metrics::OnSpans(const SpansOutcome& outcome) {
  const auto count = [&](const char* result, int64_t spans) {
    families_->spans_total.Add({{"result", result}}).Increment(static_cast<double>(spans));
  };
  count(kSpansExported, outcome.exported);
  count(kSpansFailed, outcome.failed);
  count(kSpansDropped, outcome.dropped);
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

void Metrics::AddObjects() {
  for (const ObjectOperation operation : kObjectOperations) {
    for (const ObjectOutcome outcome : kObjectOutcomes) {
      families_->object_requests.Add(ObjectLabels(operation, outcome));
    }
    families_->object_seconds.Add({{"operation", std::string(NameOf(operation))}}, DiskBounds());
  }
  for (const char* const direction : {kSent, kReceived}) {
    families_->object_bytes.Add({{"direction", direction}});
  }
}

void Metrics::OnObjectRequest(const ObjectRequest& request) {
  families_->object_requests.Add(ObjectLabels(request.operation, request.outcome)).Increment();
  families_->object_seconds
      .Add({{"operation", std::string(NameOf(request.operation))}}, DiskBounds())
      .Observe(request.seconds);
  families_->object_bytes.Add({{"direction", kSent}}).Increment(static_cast<double>(request.sent));
  families_->object_bytes.Add({{"direction", kReceived}})
      .Increment(static_cast<double>(request.received));
}

std::shared_ptr<const ScrapeSource> Metrics::scrapes() const { return families_; }

}  // namespace wan::server
