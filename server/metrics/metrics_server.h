// The HTTP server for Prometheus (GET /metrics) and for the probes of a platform. GET / lists the
// pages; HEAD works as well.
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
  // Maximum number of open connections of each of three kinds: connections whose request is
  // incomplete, scrapes, and others. If a kind has more, the server closes the oldest connection of
  // the peer that has the most connections of this kind, so that peers do not displace each other,
  // and scrapes do not displace probes.
  size_t connections = 64;
  // Maximum time from the start of the connection to the last byte of the request's header.
  std::chrono::milliseconds header_time{5'000};
  // Maximum number of bytes of the header's fields; the request line may have as many. Bodies of
  // requests are never read.
  size_t header_bytes = 8 << 10;
  // Maximum time for sending an answer.
  std::chrono::milliseconds answer_time{10'000};
  // How often the metrics are collected, for all scrapes together.
  ScrapeRenderer::Rate rounds;
};

// Answers HTTP probes of platforms such as Kubernetes, which cannot probe gRPC over TLS. Each
// function returns OK, which is answered with 200, or an error, which is answered with 503 and its
// message. The functions are called on the server's thread and must be quick.
struct HealthPages {
  std::function<absl::Status()> alive;  // for GET /livez: an error if only a restart helps
  std::function<absl::Status()> ready;  // for GET /readyz: an error if no job would be accepted
};

// One thread serves all connections without blocking. A second thread collects the metrics, so that
// no probe waits for a scrape. The server uses Boost.Beast (docs/design/building.md).
class MetricsServer {
 public:
  // Listens on the address and starts the threads. Fails with UNAVAILABLE if the address is taken
  // or does not belong to this machine. If `tls` is not null, it must outlive the server; each
  // connection uses the content that the files have when it begins, and header_time includes the
  // handshake. If `health` is null, the server has no pages for probes.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const HostPort& address, std::shared_ptr<const ScrapeSource> metrics,
      const MetricsServerLimits& limits = {}, TlsFiles* tls = nullptr, HealthPages health = {},
      Clock& clock = SystemClock());
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  // Waits for a running Collect() and closes every connection.
  ~MetricsServer();

  // The address on which the server listens, with the actual port.
  const HostPort& address() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
