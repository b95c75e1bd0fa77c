#include "server/metrics/metrics_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/http/span_body.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/calls/caller_address.h"
#include "server/calls/connection_stream.h"
#include "server/calls/request_target.h"
#include "server/metrics/connection_share.h"
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
// How long the server waits before it accepts connections again when the process has run out of
// file descriptors.
constexpr std::chrono::milliseconds kAcceptAgain{100};

// The kinds of connections. Each kind has its own limit, so that probes always get through.
enum class Kind { kArriving, kScrape, kOther };

// The state that all connections share.
struct Shared {
  ScrapeRenderer& renderer;
  const HealthPages& health;
  const MetricsServerLimits& limits;
  asio::io_context& io;
  // Moves a connection to another kind.
  std::function<void(Kind kind, const std::string& peer, const std::shared_ptr<Closable>&)> moved;
};

// Returns the value of the header field; joins several values with commas, as HTTP allows.
std::string AllOf(const http::request<http::empty_body>& request, http::field name) {
  std::string all;
  const auto found = request.equal_range(name);
  for (auto field = found.first; field != found.second; ++field) {
    const beast::string_view value = field->value();
    all.append(all.empty() ? "" : ",").append(value.data(), value.size());
  }
  return all;
}

// A connection that serves one request and is then closed.
template <typename Stream>
class Connection final : public Closable, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  // `tls` is null if the connection is plain text.
  Connection(const Shared& shared, std::string peer, std::shared_ptr<asio::ssl::context> tls,
             tcp::socket socket)
      : shared_(shared),
        peer_(std::move(peer)),
        tls_(std::move(tls)),
        stream_(MakeStream<Stream>(std::move(socket), tls_.get())),
        buffer_(2 * shared.limits.header_bytes) {
    parser_.header_limit(static_cast<uint32_t>(shared.limits.header_bytes));
    // A request with a body of any size is answered with 405, and its body is not read. boost::none
    // would refuse every body in Boost 1.74.
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
  }

  void Start() {
    // Handshake and header together have one limit; bytes that arrive slowly do not extend it.
    Socket().expires_after(shared_.limits.header_time);
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
    const http::request<http::empty_body>& request = parser_.get();
    response_.version(request.version());
    response_.keep_alive(false);
    const bool scrape = IsRead(request) && PathOf(request) == kPath;
    shared_.moved(scrape ? Kind::kScrape : Kind::kOther, peer_, this->shared_from_this());
    if (scrape) {
      AwaitMetrics(request);
    } else {
      std::string text;
      response_.result(FillPage(request, &text));
      response_.set(http::field::content_type, "text/plain; charset=utf-8");
      Send(std::make_shared<const std::string>(std::move(text)));
    }
  }

  static bool IsRead(const http::request<http::empty_body>& request) {
    return request.method() == http::verb::get || request.method() == http::verb::head;
  }

  static std::string PathOf(const http::request<http::empty_body>& request) {
    return ParseRequestTarget({request.target().data(), request.target().size()})
        .value_or(RequestTarget())
        .path;
  }

  // Sends the answer, whose header is already in response_.
  void Send(ScrapeRenderer::Text text) {
    text_ = std::move(text);
    response_.body() = {text_->data(), text_->size()};
    response_.prepare_payload();
    if (parser_.get().method() == http::verb::head) response_.body() = {};
    Socket().expires_after(shared_.limits.answer_time);
    http::async_write(stream_, response_,
                      [self = this->shared_from_this()](error_code error, size_t) {
                        if (!error) self->End();
                      });
  }

  // Closes the connection properly, so that the peer knows that the answer is complete.
  void End() {
    if constexpr (kIsTls<Stream>) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      Socket().socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  // Writes the answer to a request that is not a scrape; returns the answer's status.
  http::status FillPage(const http::request<http::empty_body>& request, std::string* text) {
    if (!IsRead(request)) {
      response_.set(http::field::allow, "GET, HEAD");
      *text = absl::StrCat("This port answers only GET and HEAD.\n", Pages());
      return http::status::method_not_allowed;
    }
    const std::string path = PathOf(request);
    if (path == kAlivePath && shared_.health.alive) return FillHealth(shared_.health.alive(), text);
    if (path == kReadyPath && shared_.health.ready) return FillHealth(shared_.health.ready(), text);
    *text = Pages();
    return path == "/" ? http::status::ok : http::status::not_found;
  }

  // Answers when the metrics are collected, unless the connection was closed meanwhile.
  void AwaitMetrics(const http::request<http::empty_body>& request) {
    const ScrapeRenderer::Variant variant{ChooseFormat(AllOf(request, http::field::accept)),
                                          TakesGzip(AllOf(request, http::field::accept_encoding))};
    const std::string_view content_type = ContentTypeOf(variant.format);
    response_.result(http::status::ok);
    response_.set(http::field::content_type,
                  beast::string_view(content_type.data(), content_type.size()));
    response_.set(http::field::vary, "Accept, Accept-Encoding");
    if (variant.gzip) response_.set(http::field::content_encoding, "gzip");
    shared_.renderer.Render(variant, [&io = shared_.io, self = this->shared_from_this()](
                                         ScrapeRenderer::Text text) mutable {
      // Move `self` into the task, so that the connection is not destroyed on the renderer's
      // thread.
      asio::post(io, [self = std::move(self), text = std::move(text)] {
        if (self->Socket().socket().is_open()) self->Send(text);
      });
    });
  }

  // Returns the list of pages, one in each line.
  std::string Pages() const {
    std::string text = absl::StrCat("GET ", kPath, ": metrics for Prometheus\n");
    if (shared_.health.alive) {
      absl::StrAppend(&text, "GET ", kAlivePath, ": 200, or 503 if only a restart helps\n");
    }
    if (shared_.health.ready) {
      absl::StrAppend(&text, "GET ", kReadyPath, ": 200, or 503 if no job would be accepted now\n");
    }
    return text;
  }

  static http::status FillHealth(const absl::Status& status, std::string* text) {
    *text = status.ok() ? "ok\n" : absl::StrCat(status.message(), "\n");
    return status.ok() ? http::status::ok : http::status::service_unavailable;
  }

  const Shared& shared_;
  const std::string peer_;
  const std::shared_ptr<asio::ssl::context> tls_;  // null: the connection is plain text
  Stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  ScrapeRenderer::Text text_;  // the body of the answer, which other scrapes share
  http::response<http::span_body<const char>> response_;
};

// Listens on the address.
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

struct MetricsServer::State {
  State(std::shared_ptr<const ScrapeSource> metrics, const MetricsServerLimits& server_limits,
        TlsFiles* tls_files, HealthPages health_pages, Clock& clock)
      : health(std::move(health_pages)),
        limits(server_limits),
        renderer(std::move(metrics), server_limits.rounds, clock) {
    if (tls_files != nullptr) tls.emplace(*tls_files, TlsProtocol::kHttp1, clock);
  }

  // Begins to serve a connection, in plain text or over TLS.
  template <typename Stream>
  void Begin(tcp::socket socket, std::shared_ptr<asio::ssl::context> context) {
    error_code gone;
    const tcp::endpoint endpoint = socket.remote_endpoint(gone);
    if (gone) return;
    sockaddr_storage address = {};
    std::memcpy(&address, endpoint.data(), endpoint.size());
    const std::string peer = NetworkOf(address);
    // Drop a connection whose handshake would have to wait: probes and scrapers never make that
    // many connections.
    if (tls.has_value() && tls->pace().Take(peer) != absl::ZeroDuration()) return;
    auto connection =
        std::make_shared<Connection<Stream>>(shared, peer, std::move(context), std::move(socket));
    ShareOf(Kind::kArriving).Add(peer, connection);
    connection->Start();
  }

  void Accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error) {
        AcceptLater();
        return;
      }
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

  ConnectionShare& ShareOf(Kind kind) { return shares[static_cast<size_t>(kind)]; }

  const HealthPages health;
  const MetricsServerLimits limits;
  std::optional<TlsContexts> tls;  // nullopt: connections are plain text
  ConnectionShare shares[3] = {ConnectionShare(limits.connections),
                               ConnectionShare(limits.connections),
                               ConnectionShare(limits.connections)};  // the index is the kind
  HostPort address;
  // Destroyed before the members above, because pending handlers refer to those members.
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer accept_again{io};
  const Shared shared{
      renderer, health, limits, io,
      [this](Kind kind, const std::string& peer, const std::shared_ptr<Closable>& connection) {
        ShareOf(Kind::kArriving).Remove(*connection);
        ShareOf(kind).Add(peer, connection);
      }};
  // Destroyed before all other members, because pending scrapes hold connections.
  ScrapeRenderer renderer;
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const HostPort& address, std::shared_ptr<const ScrapeSource> metrics,
    const MetricsServerLimits& limits, TlsFiles* tls, HealthPages health, Clock& clock) {
  auto state = std::make_unique<State>(std::move(metrics), limits, tls, std::move(health), clock);
  if (const error_code error = Listen(state->acceptor, address)) {
    return absl::UnavailableError(absl::StrCat(
        "metrics_listen: cannot listen on ", ToString(address),
        ": the port is taken, or the host is not an address of this machine; choose another "
        "address"));
  }
  state->address = {address.host, state->acceptor.local_endpoint().port()};
  state->Accept();
  state->thread = std::thread([&io = state->io] { io.run(); });
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

MetricsServer::~MetricsServer() {
  state_->io.stop();
  state_->thread.join();
}

const HostPort& MetricsServer::address() const { return state_->address; }

}  // namespace wan::server
