// What the server tells other hosts of its jobs: webhooks, and traces for a collector.
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
  // Reads the files that the settings name; the error says which setting cannot be used. The
  // listeners hear what was sent and what was not; all that is passed in but `config` must outlive
  // the object.
  static absl::StatusOr<std::unique_ptr<OutboundReports>> Open(
      const ServerConfig& config, Clock& clock, Logger& logger,
      const std::vector<StateListener*>& listeners);
  OutboundReports(const OutboundReports&) = delete;
  OutboundReports& operator=(const OutboundReports&) = delete;

  // Makes the jobs that are opened with these options tell this object, which must outlive them.
  void ListenTo(JobServiceOptions& options);
  // Begins to deliver webhooks of these jobs. Call once.
  void Start(JobService& jobs);

  // Ends the attempts that run; their reports are due again later. Idempotent.
  void StopWebhooks();
  // Goes on for a few seconds until all spans are sent. Idempotent.
  void StopTraces();

 private:
  explicit OutboundReports(const ServerConfig& config) : config_(config) {}
  absl::Status OpenWebhooks(Clock& clock, const std::vector<StateListener*>& listeners);
  absl::Status OpenTraces(Clock& clock, Logger& logger,
                          const std::vector<StateListener*>& listeners);

  const ServerConfig config_;
  std::unique_ptr<CurlTransport> transport_;
  std::unique_ptr<WebhookDelivery> webhooks_;  // null: there are none
  std::unique_ptr<SpanExporter> spans_;        // null: no traces are exported
  std::unique_ptr<JobTracer> tracer_;
};

}  // namespace wan::server
