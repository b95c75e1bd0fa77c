#include "server/calls/connection_acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/calls/caller_address.h"

namespace wan::server {
namespace {

// After a refusal the acceptor looks for room at this interval.
constexpr int kLookAgainMillis = 200;
constexpr uint64_t kNoSocket = 0;
// Maximum number of connections that one listener accepts before the acceptor looks whether it
// should stop.
constexpr int kAcceptedInTurn = 64;
// A sweep looks at every open connection, so the acceptor does not sweep at every refusal: on
// average a refusal costs at most this many looks.
constexpr size_t kLooksOfARefusal = 16;

int OpenReserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// Returns a socket's inode, which no other open socket has.
uint64_t IdentityOf(int socket) {
  struct stat facts = {};
  if (fstat(socket, &facts) != 0 || !S_ISSOCK(facts.st_mode)) return kNoSocket;
  return facts.st_ino;
}

struct Candidate {
  sockaddr_storage address = {};
  socklen_t size = 0;
};

Candidate Wildcard6() {
  Candidate candidate;
  auto& v6 = reinterpret_cast<sockaddr_in6&>(candidate.address);
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_any;
  candidate.size = sizeof(v6);
  return candidate;
}

std::vector<Candidate> Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return {};
  std::vector<Candidate> candidates;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Candidate candidate;
    std::memcpy(&candidate.address, entry->ai_addr, entry->ai_addrlen);
    candidate.size = entry->ai_addrlen;
    candidates.push_back(candidate);
  }
  freeaddrinfo(found);
  return candidates;
}

bool SetOption(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

// Returns a listening socket, or -1 on failure. Accepted sockets inherit the options set here.
int ListenOn(Candidate candidate, int port, const ConnectionLimits& limits) {
  auto* const address = reinterpret_cast<sockaddr*>(&candidate.address);
  const bool v6 = candidate.address.ss_family == AF_INET6;
  if (v6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(static_cast<uint16_t>(port));
  }
  const int socket =
      ::socket(candidate.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const bool listening = SetOption(socket, SOL_SOCKET, SO_REUSEADDR, 1) &&
                         (!v6 || SetOption(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0)) &&
                         SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1) &&
                         bind(socket, address, candidate.size) == 0 &&
                         listen(socket, SOMAXCONN) == 0;
  if (!listening) {
    close(socket);
    return -1;
  }
  // Ignore a failure of this option: gRPC's keepalive also notices a peer that has vanished.
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limits.unacknowledged.count()));
  return socket;
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

ConnectionStats& ConnectionStats::operator+=(const ConnectionStats& other) {
  open += other.open;
  limit += other.limit;
  refused_address += other.refused_address;
  refused_total += other.refused_total;
  refused_descriptors += other.refused_descriptors;
  for (const auto& [rule, count] : other.misused) misused[rule] += count;
  return *this;
}

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(
    const HostPort& address, const ConnectionLimits& limits, std::string_view setting) {
  std::vector<int> listeners;
  int port = address.port;
  const auto add = [&](const Candidate& candidate) {
    const int socket = ListenOn(candidate, port, limits);
    if (socket < 0) return false;
    listeners.push_back(socket);
    port = PortOf(socket);
    return true;
  };
  const bool wildcard = address.host == "0.0.0.0" || address.host == "::";
  // The IPv6 wildcard socket also accepts IPv4, so listen on the other addresses only if the
  // machine has no IPv6.
  if (!wildcard || !add(Wildcard6())) {
    for (const Candidate& candidate : Resolve(address.host)) add(candidate);
  }
  if (listeners.empty()) {
    return absl::UnavailableError(
        absl::StrCat(std::string(setting), ": cannot listen on ", ToString(address),
                     ": the port is taken, or the machine does not have this address"));
  }
  return std::unique_ptr<ConnectionAcceptor>(
      new ConnectionAcceptor(std::move(listeners), port, limits));
}

ConnectionAcceptor::ConnectionAcceptor(std::vector<int> listeners, int port,
                                       const ConnectionLimits& limits)
    : listeners_(std::move(listeners)),
      port_(port),
      limits_(limits),
      stop_event_(eventfd(0, EFD_CLOEXEC)),
      reserve_(OpenReserve()) {}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  for (const int listener : listeners_) close(listener);
  close(stop_event_);
  if (reserve_ >= 0) close(reserve_);
}

void ConnectionAcceptor::Start(std::function<void(int socket)> hand_over,
                               std::function<void(bool)> accepting) {
  hand_over_ = std::move(hand_over);
  on_accepting_ = std::move(accepting);
  thread_ = std::thread([this] { Loop(); });
}

void ConnectionAcceptor::Stop() {
  const uint64_t one = 1;
  if (write(stop_event_, &one, sizeof(one)) < 0) return;
  if (thread_.joinable()) thread_.join();
  // Close the connections that nobody has accepted now, not only at the end of the process.
  for (const int listener : listeners_) shutdown(listener, SHUT_RDWR);
}

ConnectionStats ConnectionAcceptor::Stats() {
  absl::MutexLock lock(&mutex_);
  Sweep();
  ConnectionStats stats = refused_;
  stats.open = static_cast<int>(open_.size());
  stats.limit = limits_.total;
  return stats;
}

void ConnectionAcceptor::Loop() {
  std::vector<pollfd> waited = {{stop_event_, POLLIN, 0}};
  for (const int listener : listeners_) waited.push_back({listener, POLLIN, 0});
  for (;;) {
    // Without a spare descriptor the acceptor cannot refuse a waiting connection, and poll would
    // return at once in a busy loop. So wait without polling the listeners until a descriptor is
    // free.
    if (reserve_ < 0) reserve_ = OpenReserve();
    const nfds_t count = reserve_ < 0 ? 1 : waited.size();
    for (pollfd& entry : waited) entry.revents = 0;
    poll(waited.data(), count, accepting_ && reserve_ >= 0 ? -1 : kLookAgainMillis);
    if (waited.front().revents != 0) return;
    for (size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents == 0) continue;
      for (int n = 0; n < kAcceptedInTurn && AcceptOne(waited[i].fd); ++n) {
      }
    }
    if (!accepting_ && HasRoom()) SetAccepting(true);
  }
}

bool ConnectionAcceptor::AcceptOne(int listener) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  const int socket =
      accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {
    if (OutOfDescriptors(errno)) {
      RefuseOne(listener);
      SetAccepting(false);
      return false;
    }
    // Other errors of accept concern only this connection, for example that it was reset.
    return errno != EAGAIN && errno != EWOULDBLOCK && errno != EBADF && errno != EINVAL;
  }
  if (Admit(socket, peer)) {
    hand_over_(socket);
  } else {
    close(socket);
  }
  return true;
}

void ConnectionAcceptor::RefuseOne(int listener) {
  close(reserve_);
  const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket >= 0) close(socket);
  reserve_ = OpenReserve();
  absl::MutexLock lock(&mutex_);
  ++refused_.refused_descriptors;
}

bool ConnectionAcceptor::Admit(int socket, const sockaddr_storage& peer) {
  std::string address = NetworkOf(peer);
  bool full = false;
  {
    absl::MutexLock lock(&mutex_);
    Forget(socket);  // the number is new to the process, so its former socket was closed
    const auto too_many = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto found = by_address_.find(address);
      full = static_cast<int>(open_.size()) >= limits_.total;
      return full || (found != by_address_.end() && found->second >= limits_.per_address);
    };
    if (too_many() && ++refused_since_sweep_ * kLooksOfARefusal >= open_.size()) {
      refused_since_sweep_ = 0;
      Sweep();
    }
    if (!too_many()) {
      ++by_address_[address];
      open_[socket] = {std::move(address), IdentityOf(socket)};
      return true;
    }
    ++(full ? refused_.refused_total : refused_.refused_address);
  }
  if (full) SetAccepting(false);
  return false;
}

void ConnectionAcceptor::Sweep() {
  std::vector<int> closed;
  for (const auto& [socket, connection] : open_) {
    if (IdentityOf(socket) != connection.identity) closed.push_back(socket);
  }
  for (const int socket : closed) Forget(socket);
}

void ConnectionAcceptor::Forget(int socket) {
  const auto found = open_.find(socket);
  if (found == open_.end()) return;
  const auto counted = by_address_.find(found->second.address);
  if (--counted->second == 0) by_address_.erase(counted);
  open_.erase(found);
}

void ConnectionAcceptor::SetAccepting(bool accepting) {
  if (std::exchange(accepting_, accepting) != accepting) on_accepting_(accepting);
}

bool ConnectionAcceptor::HasRoom() {
  // Try to open a descriptor; the reserve does not count as room.
  const int probe = OpenReserve();
  if (probe < 0) return false;
  close(probe);
  absl::MutexLock lock(&mutex_);
  Sweep();
  return static_cast<int>(open_.size()) < limits_.total;
}

}  // namespace wan::server
