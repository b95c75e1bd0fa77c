// The HTTP endpoint that Prometheus scrapes: GET /metrics.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "server/config/host_port.h"

namespace prometheus {
class Collectable;
}

namespace wan::server {

// What one connection may take, and how many there are (docs/limits.md).
struct MetricsServerLimits {
  // Connections that are open at a time. One more closes the oldest, which is never a scraper that
  // sent its request when it connected: that one is answered within milliseconds.
  size_t connections = 64;
  // From the connection to the last byte of the request's header, however slowly it arrives.
  std::chrono::milliseconds header_time{5'000};
  // The fields of the header, with their line ends; the request line may have as many. A body is
  // never read.
  size_t header_bytes = 8 << 10;
  // From the first byte of the answer to the last one that the socket takes.
  std::chrono::milliseconds answer_time{10'000};
};

// One thread answers all connections, and no connection holds up another. Boost.Beast reads and
// writes HTTP; docs/building.md says which libraries were weighed.
class MetricsServer {
 public:
  // Listens. UNAVAILABLE if the address cannot be had. What `metrics` collects is collected anew
  // for each scrape, on the server's thread.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const HostPort& address, std::shared_ptr<const prometheus::Collectable> metrics,
      const MetricsServerLimits& limits = {});
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  // Waits for a collection that is under way, and closes every connection.
  ~MetricsServer();

  // With the port that was taken.
  const HostPort& address() const;

 private:
  struct Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace wan::server
