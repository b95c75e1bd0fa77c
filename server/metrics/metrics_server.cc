#include "server/metrics/metrics_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/calls/connection_stream.h"
#include "server/calls/request_target.h"
#include "server/metrics/exposition.h"

namespace wan::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr char kPath[] = "/metrics";
constexpr char kAlivePath[] = "/livez";
constexpr char kReadyPath[] = "/readyz";
// How long the server waits before it accepts again, after it had no file descriptor left.
constexpr std::chrono::milliseconds kAcceptAgain{100};

// What a list of connections needs to know of one.
class Closable {
 public:
  virtual ~Closable() = default;
  // Makes the pending operation fail, which releases the last reference.
  virtual void Close() = 0;
};

// The field's value; of a field that occurs several times all of them, which means the same.
std::string AllOf(const http::request<http::empty_body>& request, http::field name) {
  std::string all;
  const auto found = request.equal_range(name);
  for (auto field = found.first; field != found.second; ++field) {
    const beast::string_view value = field->value();
    all.append(all.empty() ? "" : ",").append(value.data(), value.size());
  }
  return all;
}

// One request and its answer over a stream of one of the two kinds; the connection is closed after
// it.
template <typename Stream>
class Connection final : public Closable, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  // `tls` is null for plain text.
  Connection(const ScrapeSource& metrics, const HealthPages& health,
             const MetricsServerLimits& limits, std::shared_ptr<asio::ssl::context> tls,
             tcp::socket socket)
      : tls_(std::move(tls)),
        stream_(MakeStream<Stream>(std::move(socket), tls_.get())),
        buffer_(2 * limits.header_bytes),
        metrics_(metrics),
        health_(health),
        limits_(limits) {
    parser_.header_limit(static_cast<uint32_t>(limits.header_bytes));
    // A body of any announced size is answered (405) and never read. (No limit at all would refuse
    // every body in Boost 1.74, which compares the size with the missing limit.)
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
  }

  void Start() {
    // One limit for handshake and header together: bytes that trickle in do not extend it.
    Socket().expires_after(limits_.header_time);
    if constexpr (kIsTls<Stream>) {
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (!error) self->ReadHeader();
                              });
    } else {
      ReadHeader();
    }
  }

  void Close() override { Socket().close(); }

 private:
  beast::tcp_stream& Socket() { return beast::get_lowest_layer(stream_); }

  void ReadHeader() {
    http::async_read_header(stream_, buffer_, parser_,
                            [self = this->shared_from_this()](error_code error, size_t) {
                              if (!error) self->Answer();
                            });
  }

  void Answer() {
    Fill(parser_.get());
    Socket().expires_after(limits_.answer_time);
    http::async_write(stream_, response_,
                      [self = this->shared_from_this()](error_code error, size_t) {
                        if (!error) self->End();
                      });
  }

  // Tells the peer that the answer is whole.
  void End() {
    if constexpr (kIsTls<Stream>) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      Socket().socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  void Fill(const http::request<http::empty_body>& request) {
    response_.version(request.version());
    response_.keep_alive(false);
    response_.set(http::field::content_type, "text/plain; charset=utf-8");
    const bool head = request.method() == http::verb::head;
    if (!head && request.method() != http::verb::get) {
      response_.result(http::status::method_not_allowed);
      response_.set(http::field::allow, "GET, HEAD");
      response_.body() = absl::StrCat("This port answers only GET and HEAD.\n", Pages());
    } else {
      const std::string path =
          ParseRequestTarget({request.target().data(), request.target().size()})
              .value_or(RequestTarget())
              .path;
      if (path == kPath) {
        FillMetrics(request);
      } else if (path == kAlivePath && health_.alive) {
        FillHealth(health_.alive());
      } else if (path == kReadyPath && health_.ready) {
        FillHealth(health_.ready());
      } else {
        response_.result(path == "/" ? http::status::ok : http::status::not_found);
        response_.body() = Pages();
      }
    }
    response_.prepare_payload();
    if (head) response_.body().clear();
  }

  void FillMetrics(const http::request<http::empty_body>& request) {
    const MetricFormat format = ChooseFormat(AllOf(request, http::field::accept));
    const std::string_view content_type = ContentTypeOf(format);
    response_.result(http::status::ok);
    response_.set(http::field::content_type,
                  beast::string_view(content_type.data(), content_type.size()));
    response_.set(http::field::vary, "Accept, Accept-Encoding");
    response_.body() = WriteMetrics(metrics_.Collect(), format);
    if (!TakesGzip(AllOf(request, http::field::accept_encoding))) return;
    response_.body() = Gzip(response_.body());
    response_.set(http::field::content_encoding, "gzip");
  }

  // The pages that this port has, one a line.
  std::string Pages() const {
    std::string text = absl::StrCat("GET ", kPath, ": metrics for Prometheus\n");
    if (health_.alive) {
      absl::StrAppend(&text, "GET ", kAlivePath, ": 200, or 503 if only a restart helps\n");
    }
    if (health_.ready) {
      absl::StrAppend(&text, "GET ", kReadyPath, ": 200, or 503 if no job would be accepted now\n");
    }
    return text;
  }

  void FillHealth(const absl::Status& status) {
    response_.result(status.ok() ? http::status::ok : http::status::service_unavailable);
    response_.body() = status.ok() ? "ok\n" : absl::StrCat(status.message(), "\n");
  }

  const std::shared_ptr<asio::ssl::context> tls_;  // null without TLS
  Stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  const ScrapeSource& metrics_;
  const HealthPages& health_;
  const MetricsServerLimits& limits_;
};

// Binds the address and listens on it.
error_code Listen(tcp::acceptor& acceptor, const HostPort& address) {
  error_code error;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error) return error;
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (error) return error;
  acceptor.bind(endpoint, error);
  if (error) return error;
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

}  // namespace

struct MetricsServer::Parts {
  Parts(std::shared_ptr<const ScrapeSource> collectable, const MetricsServerLimits& server_limits,
        TlsFiles* tls_files, HealthPages health_pages)
      : metrics(std::move(collectable)), health(std::move(health_pages)), limits(server_limits) {
    if (tls_files != nullptr) tls.emplace(*tls_files);
  }

  // Begins a connection over a stream of one kind.
  template <typename Stream>
  void Begin(tcp::socket socket, std::shared_ptr<asio::ssl::context> context) {
    auto connection = std::make_shared<Connection<Stream>>(*metrics, health, limits,
                                                           std::move(context), std::move(socket));
    connections.push_back(connection);
    connection->Start();
  }

  void Accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error) {
        AcceptLater();
        return;
      }
      MakeRoom();
      ChooseStream(tls, [&]<typename Stream>(std::type_identity<Stream>,
                                             std::shared_ptr<asio::ssl::context> context) {
        Begin<Stream>(std::move(socket), std::move(context));
      });
      Accept();
    });
  }

  void AcceptLater() {
    accept_again.expires_after(kAcceptAgain);
    accept_again.async_wait([this](error_code) { Accept(); });
  }

  // Forgets the connections that have ended, and closes the oldest if there is no room for one
  // more.
  void MakeRoom() {
    connections.remove_if([](const std::weak_ptr<Closable>& gone) { return gone.expired(); });
    while (connections.size() >= limits.connections) {
      if (const auto oldest = connections.front().lock()) oldest->Close();
      connections.pop_front();
    }
  }

  const std::shared_ptr<const ScrapeSource> metrics;
  const HealthPages health;
  const MetricsServerLimits limits;
  std::optional<TlsContexts> tls;                  // nothing: plain text
  std::list<std::weak_ptr<Closable>> connections;  // the oldest first
  HostPort address;
  // Goes before the members above: the handlers that it still holds refer to them.
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer accept_again{io};
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const HostPort& address, std::shared_ptr<const ScrapeSource> metrics,
    const MetricsServerLimits& limits, TlsFiles* tls, HealthPages health) {
  auto parts = std::make_unique<Parts>(std::move(metrics), limits, tls, std::move(health));
  if (const error_code error = Listen(parts->acceptor, address)) {
    return absl::UnavailableError(absl::StrCat(
        "metrics_listen: cannot listen on ", ToString(address),
        ": the port is taken, or the host is not an address of this machine; choose another "
        "address"));
  }
  parts->address = {address.host, parts->acceptor.local_endpoint().port()};
  parts->Accept();
  parts->thread = std::thread([&io = parts->io] { io.run(); });
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsServer::~MetricsServer() {
  parts_->io.stop();
  parts_->thread.join();
}

const HostPort& MetricsServer::address() const { return parts_->address; }

}  // namespace wan::server
