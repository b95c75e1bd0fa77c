// Accepts the connections of a port and hands them over: those of gRPC's port to the relay.
//
// gRPC 1.51's own listener is not used: when accept fails because the process has no descriptor
// left, it gives the port up for good, and no connection is accepted until a restart. It also
// counts nothing, so that one address can take every descriptor.
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
  // Connections that are open at a time, in all and from one address. An IPv6 caller is counted by
  // its /64 network, because it may use every address of it.
  int total = 1;
  int per_address = 1;
  // How long a peer may leave what was sent to it unacknowledged (TCP_USER_TIMEOUT).
  std::chrono::milliseconds unacknowledged{10'000};
};

struct ConnectionStats {
  int open = 0;
  int limit = 0;
  // Connections that were closed at once, by what there was too much of, since the start.
  int64_t refused_address = 0;
  int64_t refused_total = 0;
  int64_t refused_descriptors = 0;
  // Connections of gRPC that were closed since the start because their caller broke a rule of the
  // relay, by its name.
  std::map<std::string, int64_t> misused;

  ConnectionStats& operator+=(const ConnectionStats& other);
};

// Thread-safe. A connection above a limit is closed at once, so that its caller sees an error
// (UNAVAILABLE) instead of waiting.
class ConnectionAcceptor {
 public:
  // Takes the port. UNAVAILABLE, beginning with `setting`, if the address cannot be had. "0.0.0.0"
  // and "::" both listen to IPv4 and IPv6, as gRPC's listener does.
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(
      const HostPort& address, const ConnectionLimits& limits, std::string_view setting = "listen");
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;
  // Stops.
  ~ConnectionAcceptor();

  // The port that was taken.
  int port() const { return port_; }

  // Begins to accept, on a thread of its own. `hand_over` gets a connected, non-blocking socket
  // and owns it. `accepting` is called with false when a connection had to be refused because
  // there are too many in all or no descriptors, and with true when there is room again (within
  // 0.2 s). Both are called on the acceptor's thread, with no lock held. Called once.
  void Start(std::function<void(int socket)> hand_over, std::function<void(bool)> accepting);

  // Closes the port. Once this returns nothing more is handed over. Idempotent.
  void Stop();

  ConnectionStats Stats();

 private:
  // A socket that was handed over. Its end is not visible here; its identity shows whether the
  // descriptor is still that socket.
  struct Connection {
    std::string address;
    uint64_t identity = 0;
  };

  ConnectionAcceptor(std::vector<int> listeners, int port, const ConnectionLimits& limits);

  void Loop();
  // Accepts one connection. Returns false if none waits or no descriptor is left.
  bool AcceptOne(int listener);
  // Accepts and closes one connection with the descriptor that is kept for it.
  void RefuseOne(int listener);
  // Whether the connection may stay; it is counted then.
  bool Admit(int socket, const sockaddr_storage& peer);
  // Forgets sockets that have been closed.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetAccepting(bool accepting);
  bool HasRoom();

  const std::vector<int> listeners_;
  const int port_;
  const ConnectionLimits limits_;
  const int stop_event_;
  int reserve_;            // the acceptor's thread only; -1: the spare descriptor was taken
  bool accepting_ = true;  // the acceptor's thread only
  std::function<void(int)> hand_over_;
  std::function<void(bool)> on_accepting_;
  std::thread thread_;

  absl::Mutex mutex_;
  std::unordered_map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);  // by descriptor
  std::unordered_map<std::string, int> by_address_ ABSL_GUARDED_BY(mutex_);
  ConnectionStats refused_ ABSL_GUARDED_BY(mutex_);  // its counts of refusals
};

}  // namespace wan::server
