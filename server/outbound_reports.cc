#include "server/outbound_reports.h"

#include <stop_token>
#include <string>
#include <utility>

#include "server/part_options.h"
#include "server/tracing/collector.h"
#include "server/tracing/span_ids.h"
#include "server/webhooks/webhook_message.h"

namespace wan::server {

absl::StatusOr<std::unique_ptr<OutboundReports>> OutboundReports::Open(
    const ServerConfig& config, Clock& clock, Logger& logger,
    const std::vector<StateListener*>& listeners) {
  std::unique_ptr<OutboundReports> reports(new OutboundReports());
  if (absl::Status status = reports->OpenWebhooks(config, clock, listeners); !status.ok())
    return status;
  if (absl::Status status = reports->OpenTraces(config, clock, logger, listeners); !status.ok()) {
    return status;
  }
  return reports;
}

absl::Status OutboundReports::OpenWebhooks(const ServerConfig& config, Clock& clock,
                                           const std::vector<StateListener*>& listeners) {
  if (config.webhook_hosts.empty()) return absl::OkStatus();
  WebhookOptions options;
  options.rules = rules_ = WebhookRulesOf(config);
  for (const std::string& host : config.webhook_hosts) {
    if (std::string problem = HostEntryProblem(host); !problem.empty()) {
      return absl::InvalidArgumentError("webhook_hosts " + problem);
    }
  }
  absl::StatusOr<std::string> secret = ReadWebhookSecret(config.webhook_secret);
  if (!secret.ok()) return secret.status();
  options.secret = *std::move(secret);
  transport_ = std::make_unique<CurlTransport>(options.rules, TransportLimits(), config.webhook_ca);
  webhooks_ = std::make_unique<WebhookDelivery>(std::move(options), *transport_, clock, listeners);
  return absl::OkStatus();
}

absl::Status OutboundReports::OpenTraces(const ServerConfig& config, Clock& clock, Logger& logger,
                                         const std::vector<StateListener*>& listeners) {
  if (config.otlp_endpoint.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> url = TracesUrl(config.otlp_endpoint);
  if (!url.ok()) return url.status();
  PostFields headers;
  if (!config.otlp_headers.empty()) {
    absl::StatusOr<PostFields> read = ReadCollectorHeaders(config.otlp_headers);
    if (!read.ok()) return read.status();
    headers = *std::move(read);
  }
  spans_ = std::make_unique<SpanExporter>(
      TraceOptionsOf(config),
      [collector = Collector(*url, std::move(headers), config.otlp_ca)](const std::string& request,
                                                                        std::stop_token stop) {
        return collector.Post(request, std::move(stop));
      },
      clock, listeners);
  tracer_ = std::make_unique<JobTracer>(*spans_);
  sampling_ratio_ = config.otlp_sampling_ratio;
  logger.Log(LogLevel::kInfo, "traces are exported", {{"url", *url}});
  return absl::OkStatus();
}

void OutboundReports::ListenTo(JobServiceOptions& options) {
  if (webhooks_ != nullptr) {
    options.listeners.push_back(webhooks_.get());
    options.webhook_problem = [rules = rules_](auto url) { return WebhookUrlProblem(rules, url); };
  }
  if (tracer_ != nullptr) {
    options.sinks.push_back(tracer_->StageSinks());
    options.listeners.push_back(tracer_.get());
    options.new_trace = [ratio = sampling_ratio_] { return NewTrace(ratio); };
  }
}

void OutboundReports::Start(JobService& jobs) {
  if (webhooks_ != nullptr) webhooks_->Start(jobs.webhooks());
}

void OutboundReports::StopWebhooks() {
  if (webhooks_ != nullptr) webhooks_->Stop();
}

void OutboundReports::StopTraces() {
  if (spans_ != nullptr) spans_->Stop();
}

}  // namespace wan::server
