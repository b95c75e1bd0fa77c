// The HTTP server for Prometheus (GET /metrics) and for a platform's probes. GET / lists the pages;
// each answers HEAD as well.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "server/config/host_port.h"
#include "server/metrics/scrape_renderer.h"

namespace wan::server {

class TlsFiles;

// Limits that keep slow or hostile clients from blocking a scrape (docs/operate/limits.md).
struct MetricsServerLimits {
  // Most open connections of each kind: without a whole request, scraping, asking for something
  // else. One more closes the oldest of the peer that has the most of its kind, so that no peer
  // takes the places of others, and no scrape that of a probe.
  size_t connections = 64;
  // Most time from the connection to the last byte of the request's header.
  std::chrono::milliseconds header_time{5'000};
  // Most bytes of the header's fields, and again of the request line. A body is never read.
  size_t header_bytes = 8 << 10;
  // Most time from the first to the last byte of the answer.
  std::chrono::milliseconds answer_time{10'000};
  // Limits how often the metrics are collected, for all scrapes together.
  ScrapeRenderer::Rate rounds;
};

// Answers the probes of a platform such as Kubernetes, whose probes cannot speak gRPC with TLS.
// Each function returns OK (answered with 200) or the reason (503 with its message). They are
// called on the server's thread and must be quick.
struct HealthPages {
  std::function<absl::Status()> alive;  // GET /livez: not OK if only a restart helps
  std::function<absl::Status()> ready;  // GET /readyz: not OK if no job would be accepted now
};

// One thread of its own answers all connections, and none of them blocks another. A second one
// collects the metrics, so that probes wait for no scrape. Boost.Beast reads and writes HTTP;
// docs/design/building.md says which other libraries were considered.
class MetricsServer {
 public:
  // Binds the address and starts the thread. UNAVAILABLE if the address is taken or does not belong
  // to this machine. Scrapes are answered by a ScrapeRenderer, by `clock`, in the format and with
  // the compression that the scraper asks for (exposition.h). With `tls`, which must outlive the
  // server, connections speak TLS with what the files hold when they begin; the limit of the
  // header's time includes the handshake. Without `health` the probes' pages do not exist.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const HostPort& address, std::shared_ptr<const ScrapeSource> metrics,
      const MetricsServerLimits& limits = {}, TlsFiles* tls = nullptr, HealthPages health = {},
      Clock& clock = SystemClock());
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  // Waits for a running Collect() and closes every connection.
  ~MetricsServer();

  // The address it listens on, with the real port even if port 0 was asked for.
  const HostPort& address() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
