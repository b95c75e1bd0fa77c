// A proxy in front of gRPC: terminates TLS, reads the HTTP/2 frames of both directions, and passes
// them on as long as the caller keeps to the rules of Http2Guard and AddressBudgets.
//
// gRPC gets one end of a local socket pair for each connection, over which it speaks plain text.
// CallerDirectory maps the other end to the caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/api/clock.h"
#include "server/auth/tls_files.h"
#include "server/calls/address_budgets.h"
#include "server/calls/caller_directory.h"
#include "server/calls/http2_guard.h"

namespace wan::server {

struct RelayOptions {
  Clock& clock;
  TlsFiles* tls = nullptr;  // null: plain text
  CallerDirectory& callers;
  // Most time for the TLS handshake. It starts when the connection is accepted, or when the debt of
  // its address is paid (AddressBudgets::DebtOf).
  std::chrono::milliseconds handshake{10'000};
  Http2Limits connection{};
  AddressLimits address{};
};

struct RelayStats {
  // Connections that were closed because their caller broke a rule, by NameOf(Http2Rule).
  std::map<std::string, int64_t> misused;
  // Connections that were closed because the process had no descriptor for their local sockets.
  int64_t no_descriptor = 0;
};

// A caller whose connection is closed because it broke a rule.
struct RefusedCaller {
  std::string peer;
  Http2Violation violation;
};

// Thread-safe.
class ConnectionRelay {
 public:
  struct Callbacks {
    // Receives gRPC's end, a connected, non-blocking socket, and owns it. Called by one thread at a
    // time.
    std::function<void(int socket)> hand_over;
    // Called for refused callers, at most once a minute for each address. Called on the relay's
    // threads, so it must not block.
    std::function<void(const RefusedCaller&)> on_refused;
  };

  // The objects in the options must outlive the relay.
  ConnectionRelay(const RelayOptions& options, Callbacks callbacks);
  ConnectionRelay(const ConnectionRelay&) = delete;
  ConnectionRelay& operator=(const ConnectionRelay&) = delete;
  // Calls Stop.
  ~ConnectionRelay();

  // Takes ownership of an accepted, non-blocking socket.
  void Add(int socket);

  // `hand_over` is not called after this returns. Idempotent.
  void StopHandingOver();

  // Sends gRPC's pending bytes to callers, for at most a second, and closes all connections.
  // Idempotent.
  void Stop();

  RelayStats Stats() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
