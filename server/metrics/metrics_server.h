// The HTTP server for Prometheus (GET /metrics) and a platform's probes. GET / lists the pages;
// HEAD works as well.
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
  // Most open connections of each of three kinds: request incomplete, scrapes, others. Above it,
  // the oldest connection of the peer with the most of the kind is closed, so that peers do not
  // displace each other, and scrapes do not displace probes.
  size_t connections = 64;
  // Most time from the connection to the last byte of the request's header.
  std::chrono::milliseconds header_time{5'000};
  // Most bytes of the header's fields, and also of the request line. Bodies are never read.
  size_t header_bytes = 8 << 10;
  // Most time for sending the answer.
  std::chrono::milliseconds answer_time{10'000};
  // How often the metrics are collected, for all scrapes together.
  ScrapeRenderer::Rate rounds;
};

// Answers HTTP probes, for platforms such as Kubernetes that cannot probe gRPC over TLS. Each
// function returns OK (answered with 200) or an error (503 with its message). They are called on
// the server's thread and must be quick.
struct HealthPages {
  std::function<absl::Status()> alive;  // GET /livez: error if only a restart helps
  std::function<absl::Status()> ready;  // GET /readyz: error if no job would be accepted
};

// One thread serves all connections without blocking. A second thread collects the metrics, so that
// probes never wait for a scrape. Uses Boost.Beast (docs/design/building.md).
class MetricsServer {
 public:
  // Listens on the address and starts the threads. UNAVAILABLE if the address is taken or does not
  // belong to this machine. With `tls` (must outlive the server) each connection uses the content
  // that the files have at its begin; header_time includes the handshake. Without `health` there
  // are no pages for probes.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const HostPort& address, std::shared_ptr<const ScrapeSource> metrics,
      const MetricsServerLimits& limits = {}, TlsFiles* tls = nullptr, HealthPages health = {},
      Clock& clock = SystemClock());
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  // Waits for a running Collect() and closes every connection.
  ~MetricsServer();

  // The address with the actual port.
  const HostPort& address() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
