// Sends reports about jobs to other hosts: webhooks, and traces to a collector.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "server/config/server_config.h"
#include "server/jobs/job_service.h"
#include "server/logging/logger.h"
#include "server/tracing/job_tracer.h"
#include "server/tracing/span_exporter.h"
#include "server/watch/listener.h"
#include "server/webhooks/webhook_delivery.h"
#include "server/webhooks/webhook_transport.h"

namespace wan::server {

class OutboundReports {
 public:
  // Reads the files that the settings name; an error names the invalid setting. Calls OnWebhook and
  // OnSpans of the listeners. All arguments except `config` must outlive the object.
  static absl::StatusOr<std::unique_ptr<OutboundReports>> Open(
      const ServerConfig& config, Clock& clock, Logger& logger,
      const std::vector<StateListener*>& listeners);
  OutboundReports(const OutboundReports&) = delete;
  OutboundReports& operator=(const OutboundReports&) = delete;

  // Adds this object's listeners and sinks to the options. The object must outlive a JobService
  // opened with them.
  void ListenTo(JobServiceOptions& options);
  // Begins to deliver the webhooks of these jobs. Call it once.
  void Start(JobService& jobs);

  // Cancels running attempts; their reports are sent later. Idempotent.
  void StopWebhooks();
  // Sends the waiting spans for a few seconds, then stops. Idempotent.
  void StopTraces();

 private:
  explicit OutboundReports(const ServerConfig& config) : config_(config) {}
  absl::Status OpenWebhooks(Clock& clock, const std::vector<StateListener*>& listeners);
  absl::Status OpenTraces(Clock& clock, Logger& logger,
                          const std::vector<StateListener*>& listeners);

  const ServerConfig config_;
  std::unique_ptr<CurlTransport> transport_;
  std::unique_ptr<WebhookDelivery> webhooks_;  // null: webhooks are off
  std::unique_ptr<SpanExporter> spans_;        // null: traces are off
  std::unique_ptr<JobTracer> tracer_;
};

}  // namespace wan::server
