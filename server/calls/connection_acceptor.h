// Accepts the connections of a port within limits, and hands their sockets over, for gRPC's port to
// ConnectionRelay.
//
// Replaces the listener of gRPC 1.51, which stops listening for good when accept fails for lack of
// file descriptors, and has no limits, so that one address can take every descriptor.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/config/host_port.h"

namespace wan::server {

struct ConnectionLimits {
  // Maximum number of open connections, in total and from one address (as NetworkOf counts
  // addresses).
  int total = 1;
  int per_address = 1;
  // How long sent data may stay unacknowledged before the connection is closed (TCP_USER_TIMEOUT).
  std::chrono::milliseconds unacknowledged{10'000};
};

struct ConnectionStats {
  int open = 0;
  int limit = 0;
  // Connections that were closed on arrival since the start, by the limit that they exceeded.
  int64_t refused_address = 0;
  int64_t refused_total = 0;
  int64_t refused_descriptors = 0;
  // gRPC connections closed by the relay since the start because the caller broke a rule, by the
  // rule's name (NameOf(Http2Rule)).
  std::map<std::string, int64_t> misused;

  ConnectionStats& operator+=(const ConnectionStats& other);
};

// Thread-safe. A connection above a limit is closed at once, so that its caller sees an error
// (UNAVAILABLE) instead of waiting.
class ConnectionAcceptor {
 public:
  // Listens on the address, but does not accept yet. Returns UNAVAILABLE, with a message that
  // begins with `setting`, if it cannot listen. "0.0.0.0" and "::" both listen on IPv4 and IPv6, as
  // gRPC's listener does.
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(
      const HostPort& address, const ConnectionLimits& limits, std::string_view setting = "listen");
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;
  // Calls Stop if nobody has.
  ~ConnectionAcceptor();

  // The port on which the object listens.
  int port() const { return port_; }

  // Starts the thread that accepts connections. Call Start at most once. Calls `hand_over` with a
  // connected, non-blocking socket, which then belongs to `hand_over`. Calls `accepting` with false
  // when a connection was refused because of the total limit or a lack of descriptors, and with
  // true within 0.2 s after there is room again. Both functions are called on the acceptor's thread
  // with no lock held.
  void Start(std::function<void(int socket)> hand_over, std::function<void(bool)> accepting);

  // Stops listening and ends the thread. `hand_over` is not called after Stop has returned. Later
  // calls do nothing.
  void Stop();

  ConnectionStats Stats();

 private:
  // A socket that the acceptor has handed over. The socket's new owner closes the socket without
  // telling the acceptor; comparing `identity` shows whether the descriptor still belongs to this
  // socket.
  struct Connection {
    std::string address;
    uint64_t identity = 0;
  };

  ConnectionAcceptor(std::vector<int> listeners, int port, const ConnectionLimits& limits);

  void Loop();
  // Accepts one connection and hands it over, or closes it if a limit is reached. Returns false if
  // no connection waits or no descriptor is left.
  bool AcceptOne(int listener);
  // Accepts and closes one connection, for which it frees the reserved descriptor.
  void RefuseOne(int listener);
  // Counts the connection and returns true, or returns false if that would exceed a limit.
  bool Admit(int socket, const sockaddr_storage& peer);
  // Removes sockets from the counts that their owners have closed.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetAccepting(bool accepting);
  bool HasRoom();

  const std::vector<int> listeners_;
  const int port_;
  const ConnectionLimits limits_;
  const int stop_event_;
  int reserve_;            // a spare descriptor; -1: none; used on the acceptor's thread only
  bool accepting_ = true;  // used on the acceptor's thread only
  std::function<void(int)> hand_over_;
  std::function<void(bool)> on_accepting_;
  std::thread thread_;

  absl::Mutex mutex_;
  // Handed-over sockets; the key is the descriptor.
  std::unordered_map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, int> by_address_ ABSL_GUARDED_BY(mutex_);
  size_t refused_since_sweep_ ABSL_GUARDED_BY(mutex_) = 0;
  // Only the refused_ fields are used.
  ConnectionStats refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
