// Sends reports about jobs to other hosts: webhooks to callers' hosts, and traces to a collector.
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
#include "server/webhooks/webhook_rules.h"
#include "server/webhooks/webhook_transport.h"

namespace wan::server {

class OutboundReports {
 public:
  // Reads the files that the settings name; an error says which setting is invalid. Calls OnWebhook
  // and OnSpans of `listeners` for every report that it sends. All arguments except `config` must
  // outlive the object.
  static absl::StatusOr<std::unique_ptr<OutboundReports>> Open(
      const ServerConfig& config, Clock& clock, Logger& logger,
      const std::vector<StateListener*>& listeners);
  OutboundReports(const OutboundReports&) = delete;
  OutboundReports& operator=(const OutboundReports&) = delete;

  // Adds the listeners and sinks of this object to the options. The object must outlive a
  // JobService opened with them.
  void ListenTo(JobServiceOptions& options);
  // Begins to deliver the webhooks of the jobs. Call Start at most once.
  void Start(JobService& jobs);

  // Cancels the deliveries that are running; their reports are sent later. Later calls do nothing.
  void StopWebhooks();
  // Sends the waiting spans for a few seconds at most, then stops. Later calls do nothing.
  void StopTraces();

 private:
  OutboundReports() = default;
  absl::Status OpenWebhooks(const ServerConfig& config, Clock& clock,
                            const std::vector<StateListener*>& listeners);
  absl::Status OpenTraces(const ServerConfig& config, Clock& clock, Logger& logger,
                          const std::vector<StateListener*>& listeners);

  WebhookRules rules_;         // set if webhooks are on
  double sampling_ratio_ = 0;  // set if traces are on
  std::unique_ptr<CurlTransport> transport_;
  std::unique_ptr<WebhookDelivery> webhooks_;  // null: the settings turn webhooks off
  std::unique_ptr<SpanExporter> spans_;        // null: the settings turn traces off
  std::unique_ptr<JobTracer> tracer_;
};

}  // namespace wan::server
