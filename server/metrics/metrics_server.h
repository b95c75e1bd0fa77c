// The HTTP endpoint that Prometheus scrapes: GET /metrics.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/config/host_port.h"

namespace prometheus {
class Collectable;
}

namespace wan::server {

// prometheus-cpp's own endpoint is not used: the HTTP library below it is packaged without IPv6,
// takes two seconds to stop, and does not say why it cannot listen.
class MetricsServer {
 public:
  // Listens. UNAVAILABLE if the address cannot be had. What `metrics` collects is collected anew
  // for each scrape, on one of two threads.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const HostPort& address, std::shared_ptr<const prometheus::Collectable> metrics);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  // Waits for scrapes that are being answered.
  ~MetricsServer();

  // With the port that was taken.
  const HostPort& address() const;

 private:
  struct Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace wan::server
