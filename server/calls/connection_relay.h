// A proxy in front of gRPC: terminates TLS, reads the HTTP/2 frames of both directions, and passes
// them on as long as the caller keeps to the rules of Http2Guard and AddressBudgets.
//
// For each connection gRPC gets one end of a local socket pair, over which it speaks plain text.
// CallerDirectory knows which caller is at the other end.
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
  TlsFiles* tls = nullptr;  // null: the callers speak plain text
  CallerDirectory& callers;
  // Maximum time for the TLS handshake. The time runs from the moment when the connection is
  // accepted, or when the debt of its address is paid (AddressBudgets::DebtOf).
  std::chrono::milliseconds handshake{10'000};
  Http2Limits connection{};
  AddressLimits address{};
};

struct RelayStats {
  // Connections that the relay closed because their caller broke a rule, by NameOf(Http2Rule).
  std::map<std::string, int64_t> misused;
  // Connections that the relay closed because the process had no descriptor for their local
  // sockets.
  int64_t no_descriptor = 0;
};

// A caller whose connection the relay closes because the caller broke a rule.
struct RefusedCaller {
  std::string peer;
  Http2Violation violation;
};

// Thread-safe.
class ConnectionRelay {
 public:
  struct Callbacks {
    // Receives gRPC's end of the socket pair, connected and non-blocking, and owns it. Only one
    // thread at a time calls hand_over.
    std::function<void(int socket)> hand_over;
    // The relay calls on_refused for refused callers, at most once a minute for each address.
    // `on_refused` runs on the relay's threads, so it must not block.
    std::function<void(const RefusedCaller&)> on_refused;
  };

  // The objects in the options must outlive the relay.
  ConnectionRelay(const RelayOptions& options, Callbacks callbacks);
  ConnectionRelay(const ConnectionRelay&) = delete;
  ConnectionRelay& operator=(const ConnectionRelay&) = delete;
  // Calls Stop if nobody has.
  ~ConnectionRelay();

  // Relays an accepted, non-blocking socket, which then belongs to the relay.
  void Add(int socket);

  // `hand_over` is not called after StopHandingOver has returned. Later calls do nothing.
  void StopHandingOver();

  // Closes all connections when `time` has passed. Call CloseWithin after StopHandingOver and
  // before the shutdown of gRPC, which waits for bytes that a caller does not read.
  void CloseWithin(std::chrono::milliseconds time);

  // Sends callers the bytes that gRPC has already written, for at most a second, and closes all
  // connections. Later calls do nothing.
  void Stop();

  RelayStats Stats() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
