#include "server/metrics/metrics_server.h"

#include <httplib.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr char kPath[] = "/metrics";
constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";
// Two: a scraper that reads slowly does not block the next.
constexpr int kThreads = 2;

}  // namespace

struct MetricsServer::Parts {
  HostPort address;
  httplib::Server http;
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const HostPort& address, std::shared_ptr<const prometheus::Collectable> metrics) {
  auto parts = std::make_unique<Parts>();
  httplib::Server& http = parts->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // A connection that is kept open would hold up the end of the server.
  http.set_keep_alive_max_count(1);
  // The library's default would let two servers share a port.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  http.Get(kPath, [metrics = std::move(metrics)](const httplib::Request&,
                                                 httplib::Response& response) {
    response.set_content(prometheus::TextSerializer().Serialize(metrics->Collect()), kContentType);
  });
  const int port = address.port == 0 ? http.bind_to_any_port(address.host)
                   : http.bind_to_port(address.host, address.port) ? address.port
                                                                   : -1;
  if (port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("metrics_listen: cannot listen on ", ToString(address),
                     ": the port is taken, or the host is no address of this machine"));
  }
  parts->address = {address.host, port};
  parts->thread = std::thread([&http] { http.listen_after_bind(); });
  // Before it runs, it cannot be stopped.
  while (!http.is_running()) std::this_thread::yield();
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsServer::~MetricsServer() {
  parts_->http.stop();
  parts_->thread.join();
}

const HostPort& MetricsServer::address() const { return parts_->address; }

}  // namespace wan::server
