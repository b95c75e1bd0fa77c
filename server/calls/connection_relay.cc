#include "server/calls/connection_relay.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/calls/caller_address.h"
#include "server/calls/caller_channel.h"
#include "server/calls/relayed_connection.h"
#include "server/calls/tls_contexts.h"

namespace wan::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Outcome = CallerChannel::Outcome;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr std::chrono::milliseconds kLastBytes{1'000};

// Relaying bytes costs little compared with serving the calls, so few threads suffice.
int ThreadCount() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 4);
}

// OpenSSL writes without MSG_NOSIGNAL, so writing to a closed connection would raise SIGPIPE.
void BlockSigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// An io_context and the thread that runs it.
class Loop {
 public:
  Loop()
      : thread_([this] {
          BlockSigpipe();
          io_.run();
        }) {}
  ~Loop() { Stop(); }

  asio::io_context& io() { return io_; }
  template <typename Task>
  void Post(Task task) {
    asio::post(io_, std::move(task));
  }
  void Stop() {
    io_.stop();
    Join();
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> open_{io_.get_executor()};
  std::thread thread_;
};

// A thread with its event loop, the connections that it relays, and their shared read buffer.
struct RelayLoop {
  std::vector<char> room = std::vector<char>(kReadBytes);
  bool finishing = false;
  Loop loop;
  asio::steady_timer last_bytes{loop.io()};
  std::unordered_set<std::shared_ptr<RelayedConnection>> open;

  void EndWhenEmpty() {
    if (finishing && open.empty()) loop.io().stop();
  }
};

// Returns two connected sockets, the first bound to `name`; both are -1 on failure.
std::array<int, 2> MakeLocalSockets(const std::string& name) {
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return {-1, -1};
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // A leading zero byte puts the name into the abstract namespace, without a file.
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof(address.sun_path) - 1));
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (bind(ends[0], reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)) ==
      0) {
    return ends;
  }
  for (const int end : ends) close(end);
  return {-1, -1};
}

// Returns whether the TLS handshake negotiated HTTP/2. Returns true for plain text, where
// Http2Guard checks the first bytes instead.
bool SpeaksHttp2(const SSL* connection) {
  if (connection == nullptr) return true;
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(connection, &protocol, &size);
  return size > 0;
}

}  // namespace

struct ConnectionRelay::State {
  // An accepted connection before the end of its TLS handshake. A Newcomer first waits until the
  // debt of its address is paid, and runs only on the thread of `door`.
  class Newcomer;

  State(const RelayOptions& relay_options, Callbacks relay_callbacks)
      : options(relay_options),
        callbacks(std::move(relay_callbacks)),
        budgets(options.address, options.clock) {
    if (options.tls != nullptr) tls.emplace(*options.tls, TlsProtocol::kHttp2, options.clock);
    for (int i = 0; i < ThreadCount(); ++i) loops.push_back(std::make_unique<RelayLoop>());
  }

  // Gives a connection to gRPC and to one of the loops, after its TLS handshake. Runs on the thread
  // of `door`.
  void Enter(int socket, const sockaddr_storage& peer, std::unique_ptr<CallerChannel> channel);
  // Begins to relay the connection's bytes. Runs on the loop's thread.
  void Begin(RelayLoop& loop, RelayedConnection::Ends ends, const std::string& name,
             const std::string& peer);

  const RelayOptions options;
  const Callbacks callbacks;
  AddressBudgets budgets;
  std::array<std::atomic<int64_t>, kHttp2Rules.size()> misused{};
  std::atomic<int64_t> no_descriptor = 0;
  std::optional<TlsContexts> tls;  // nullopt: the relay speaks plain text
  std::vector<std::unique_ptr<RelayLoop>> loops;
  size_t next_loop = 0;  // used on the thread of `door` only
  Loop door;             // declared last: its thread uses the members above
};

class ConnectionRelay::State::Newcomer : public std::enable_shared_from_this<Newcomer> {
 public:
  Newcomer(State& state, int socket, const sockaddr_storage& peer)
      : state_(state), socket_(state.door.io(), socket), timer_(state.door.io()), peer_(peer) {}

  void Begin() {
    const absl::Duration debt = state_.budgets.DebtOf(NetworkOf(peer_));
    if (debt > absl::ZeroDuration()) return WaitFor(debt, &Newcomer::Begin);
    if (!state_.tls.has_value()) return Open();
    const std::optional<absl::Duration> wait = state_.tls->pace().Take(NetworkOf(peer_));
    if (wait.has_value()) WaitFor(*wait, &Newcomer::Open);
  }

 private:
  // Calls `next` after the time, which may be zero.
  void WaitFor(absl::Duration time, void (Newcomer::*next)()) {
    if (time <= absl::ZeroDuration()) return (this->*next)();
    timer_.expires_after(absl::ToChronoMilliseconds(absl::Ceil(time, absl::Milliseconds(1))));
    timer_.async_wait([self = shared_from_this(), next](error_code error) {
      if (!error) (self.get()->*next)();
    });
  }

  void Open() {
    SslConnection connection;
    if (state_.tls.has_value()) {
      const std::shared_ptr<asio::ssl::context> context = state_.tls->Current();
      if (context != nullptr) {
        connection = AcceptTls(context->native_handle(), socket_.native_handle());
      }
      if (connection == nullptr) return;
      timer_.expires_after(state_.options.handshake);
      timer_.async_wait([self = shared_from_this()](error_code error) {
        error_code ignored;
        if (!error) self->socket_.close(ignored);
      });
    }
    channel_ = std::make_unique<CallerChannel>(socket_.native_handle(), std::move(connection));
    Shake();
  }

  void Shake() {
    const Outcome outcome = channel_->Handshake();
    if (outcome == Outcome::kWaitToRead || outcome == Outcome::kWaitToWrite) {
      socket_.async_wait(outcome == Outcome::kWaitToRead ? asio::posix::descriptor_base::wait_read
                                                         : asio::posix::descriptor_base::wait_write,
                         [self = shared_from_this()](error_code error) {
                           if (!error && self->socket_.is_open()) self->Shake();
                         });
      return;
    }
    timer_.cancel();
    if (outcome == Outcome::kDone && SpeaksHttp2(channel_->tls())) {
      state_.Enter(socket_.release(), peer_, std::move(channel_));
    }
  }

  State& state_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer timer_;
  const sockaddr_storage peer_;
  std::unique_ptr<CallerChannel> channel_;
};

void ConnectionRelay::State::Enter(int socket, const sockaddr_storage& peer,
                                   std::unique_ptr<CallerChannel> channel) {
  ConnectedCaller caller{PeerText(peer),
                         channel->tls() == nullptr ? "" : SubjectOf(channel->tls())};
  RelayedConnection::Ends ends{socket, std::move(channel)};
  const std::string peer_text = caller.peer;
  const std::string name = options.callers.Add(std::move(caller));
  const std::array<int, 2> local = MakeLocalSockets(name);
  if (local[0] < 0) {
    ++no_descriptor;
    options.callers.Remove(name);
    close(socket);
    return;
  }
  callbacks.hand_over(local[1]);
  ends.server = local[0];
  ends.part = budgets.Join(NetworkOf(peer));
  RelayLoop& loop = *loops[next_loop++ % loops.size()];
  // Keep `ends` in a shared_ptr, because asio tasks must be copyable.
  auto held = std::make_shared<RelayedConnection::Ends>(std::move(ends));
  loop.loop.Post(
      [this, &loop, held, name, peer_text] { Begin(loop, std::move(*held), name, peer_text); });
}

void ConnectionRelay::State::Begin(RelayLoop& loop, RelayedConnection::Ends ends,
                                   const std::string& name, const std::string& peer) {
  // The pointer is set below, when the connection exists.
  auto connection = std::make_shared<std::weak_ptr<RelayedConnection>>();
  RelayedConnection::Options relayed{options.clock, options.connection, loop.room};
  relayed.on_refused = [this, name, peer](const Http2Violation& violation, bool log) {
    options.callers.Remove(name);
    ++misused[static_cast<size_t>(violation.rule)];
    if (log) callbacks.on_refused({peer, violation});
  };
  relayed.on_closed = [this, name, connection, &loop] {
    options.callers.Remove(name);
    loop.open.erase(connection->lock());
    loop.EndWhenEmpty();
  };
  auto begun =
      std::make_shared<RelayedConnection>(loop.loop.io(), std::move(ends), std::move(relayed));
  *connection = begun;
  loop.open.insert(begun);
  begun->Begin();
  if (loop.finishing) begun->Finish();
}

ConnectionRelay::ConnectionRelay(const RelayOptions& options, Callbacks callbacks)
    : state_(std::make_unique<State>(options, std::move(callbacks))) {}

ConnectionRelay::~ConnectionRelay() { Stop(); }

void ConnectionRelay::Add(int socket) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    close(socket);  // the caller has disconnected
    return;
  }
  State& state = *state_;
  state.door.Post(
      [&state, socket, peer] { std::make_shared<State::Newcomer>(state, socket, peer)->Begin(); });
}

void ConnectionRelay::StopHandingOver() { state_->door.Stop(); }

void ConnectionRelay::CloseWithin(std::chrono::milliseconds time) {
  for (const auto& loop : state_->loops) {
    loop->loop.Post([&relay = *loop, time] {
      for (const auto& connection : relay.open) connection->CloseWithin(time);
    });
  }
}

void ConnectionRelay::Stop() {
  StopHandingOver();
  for (const auto& loop : state_->loops) {
    loop->loop.Post([&relay = *loop] {
      relay.finishing = true;
      // Iterate over a copy: a connection that is closed removes itself from `open`.
      const std::vector<std::shared_ptr<RelayedConnection>> open(relay.open.begin(),
                                                                 relay.open.end());
      for (const auto& connection : open) connection->Finish();
      relay.EndWhenEmpty();
      relay.last_bytes.expires_after(kLastBytes);
      relay.last_bytes.async_wait([&relay](error_code) { relay.loop.io().stop(); });
    });
  }
  for (const auto& loop : state_->loops) {
    loop->loop.Join();
    loop->open.clear();
  }
}

RelayStats ConnectionRelay::Stats() const {
  RelayStats stats;
  for (const Http2Rule rule : kHttp2Rules) {
    stats.misused[std::string(NameOf(rule))] = state_->misused[static_cast<size_t>(rule)];
  }
  stats.no_descriptor = state_->no_descriptor;
  return stats;
}

}  // namespace wan::server
