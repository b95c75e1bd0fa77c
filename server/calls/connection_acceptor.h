// Accepts the connections of a port within limits, and hands them over (gRPC's to ConnectionRelay).
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
  // Most open connections, in total and from one address (NetworkOf).
  int total = 1;
  int per_address = 1;
  // How long sent data may stay unacknowledged before the connection is closed (TCP_USER_TIMEOUT).
  std::chrono::milliseconds unacknowledged{10'000};
};

struct ConnectionStats {
  int open = 0;
  int limit = 0;
  // Connections closed on arrival since the start, by the exceeded limit.
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
  // Listens on the address. UNAVAILABLE, with a message that begins with `setting`, if that fails.
  // "0.0.0.0" and "::" both listen on IPv4 and IPv6, as gRPC's listener does.
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(
      const HostPort& address, const ConnectionLimits& limits, std::string_view setting = "listen");
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;
  // Calls Stop.
  ~ConnectionAcceptor();

  // The port on which the object listens.
  int port() const { return port_; }

  // Begins to accept, on a thread of its own. Call it once. `hand_over` receives and owns a
  // connected, non-blocking socket. `accepting` is called with false when a connection was refused
  // because of the total limit or a lack of descriptors, and with true within 0.2 s when there is
  // room again. Both are called on the acceptor's thread with no lock held.
  void Start(std::function<void(int socket)> hand_over, std::function<void(bool)> accepting);

  // Stops listening. `hand_over` is not called after this returns. Idempotent.
  void Stop();

  ConnectionStats Stats();

 private:
  // A socket that was handed over. Its new owner closes it without telling; comparing the identity
  // shows whether the descriptor still is this socket.
  struct Connection {
    std::string address;
    uint64_t identity = 0;
  };

  ConnectionAcceptor(std::vector<int> listeners, int port, const ConnectionLimits& limits);

  void Loop();
  // Accepts one connection. Returns false if no connection waits or no descriptor is left.
  bool AcceptOne(int listener);
  // Accepts and closes one connection, with the reserved descriptor.
  void RefuseOne(int listener);
  // Counts the connection and returns true, or returns false if a limit is reached.
  bool Admit(int socket, const sockaddr_storage& peer);
  // Removes sockets that have been closed from the counts.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetAccepting(bool accepting);
  bool HasRoom();

  const std::vector<int> listeners_;
  const int port_;
  const ConnectionLimits limits_;
  const int stop_event_;
  int reserve_;            // a spare descriptor; -1: none; acceptor's thread only
  bool accepting_ = true;  // the acceptor's thread only
  std::function<void(int)> hand_over_;
  std::function<void(bool)> on_accepting_;
  std::thread thread_;

  absl::Mutex mutex_;
  std::unordered_map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);  // by descriptor
  std::unordered_map<std::string, int> by_address_ ABSL_GUARDED_BY(mutex_);
  ConnectionStats refused_ ABSL_GUARDED_BY(mutex_);  // only its refused_ fields are used
};

}  // namespace wan::server
