#include "server/http/http_server.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <thread>

#include "server/calls/caller_address.h"
#include "server/calls/connection_stream.h"
#include "server/http/http_connection.h"

namespace wan::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using internal::PeerOf;

std::vector<std::string_view> HttpHead::All(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [field, value] : fields) {
    if (field == name) values.push_back(value);
  }
  return values;
}

std::string_view HttpHead::First(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return value;
  }
  return {};
}

struct HttpServer::State {
  State(HostPort taken, const HttpLimits& server_limits, TlsFiles* files,
        std::unique_ptr<ConnectionAcceptor> connections)
      : address(std::move(taken)), limits(server_limits), acceptor(std::move(connections)) {
    if (files != nullptr) tls.emplace(*files);
  }

  // Begins a connection when the pace of handshakes allows it. Runs on the server's thread.
  void Admit(tcp::socket socket) {
    if (!tls.has_value()) return Begin(std::move(socket));
    const std::optional<absl::Duration> wait = tls->pace().Take(NetworkOf(PeerOf(socket)));
    if (!wait.has_value()) return;
    if (*wait == absl::ZeroDuration()) return Begin(std::move(socket));
    auto timer = std::make_unique<asio::steady_timer>(io, absl::ToChronoNanoseconds(*wait));
    asio::steady_timer& waiting = *timer;
    waiting.async_wait(
        [this, timer = std::move(timer), socket = std::move(socket)](error_code error) mutable {
          if (!error) Begin(std::move(socket));
        });
  }

  void Begin(tcp::socket socket) {
    ChooseStream(tls, [&]<typename Stream>(std::type_identity<Stream>,
                                           std::shared_ptr<asio::ssl::context> context) {
      Begin<Stream>(std::move(socket), std::move(context));
    });
  }

  template <typename Stream>
  void Begin(tcp::socket socket, std::shared_ptr<asio::ssl::context> context) {
    const typename internal::HttpConnection<Stream>::Shared shared{callbacks, limits};
    std::make_shared<internal::HttpConnection<Stream>>(shared, std::move(context),
                                                       std::move(socket))
        ->Begin();
  }

  const HostPort address;
  const HttpLimits limits;
  std::optional<TlsContexts> tls;  // nullopt: connections are plain text
  HttpCallbacks callbacks;
  // Declared last, so that it is destroyed before the members to which its pending handlers refer.
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> open{io.get_executor()};
  std::thread thread;
  const std::unique_ptr<ConnectionAcceptor> acceptor;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(std::string_view setting,
                                                               const HostPort& address,
                                                               const ConnectionLimits& connections,
                                                               const HttpLimits& limits,
                                                               TlsFiles* tls) {
  ConnectionLimits own = connections;
  own.unacknowledged = limits.write_time;
  absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> taken =
      ConnectionAcceptor::Listen(address, own, setting);
  if (!taken.ok()) return taken.status();
  const int port = (*taken)->port();
  return std::unique_ptr<HttpServer>(new HttpServer(
      std::make_unique<State>(HostPort{address.host, port}, limits, tls, *std::move(taken))));
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { Stop(); }

void HttpServer::Start(HttpCallbacks callbacks, std::function<void(bool)> accepting) {
  State& state = *state_;
  state.callbacks = std::move(callbacks);
  state.thread = std::thread([&state] { state.io.run(); });
  state.acceptor->Start(
      [&state](int descriptor) {
        sockaddr_storage name{};
        socklen_t size = sizeof(name);
        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size);
        tcp::socket socket(state.io);
        error_code error;
        socket.assign(name.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), descriptor, error);
        if (error) {
          ::close(descriptor);
          return;
        }
        asio::post(state.io, [&state, socket = std::move(socket)]() mutable {
          state.Admit(std::move(socket));
        });
      },
      std::move(accepting));
}

void HttpServer::Stop() {
  state_->acceptor->Stop();
  state_->io.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

const HostPort& HttpServer::address() const { return state_->address; }
ConnectionStats HttpServer::Stats() { return state_->acceptor->Stats(); }

}  // namespace wan::server
