// One caller's connection: passes its bytes to gRPC and back, as long as it keeps to the rules.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/api/clock.h"
#include "server/calls/address_budgets.h"
#include "server/calls/caller_channel.h"
#include "server/calls/http2_guard.h"

namespace wan::server {

// All of it runs on the thread of the io_context, which holds the connection until it is closed.
class RelayedConnection : public std::enable_shared_from_this<RelayedConnection> {
 public:
  struct Ends {
    // Both sockets are non-blocking, and the connection owns them.
    int caller = -1;
    std::unique_ptr<CallerChannel> channel;  // over `caller`, after its handshake
    int server = -1;                         // the local socket whose other end gRPC has
    std::unique_ptr<AddressBudgets::Part> part;
  };
  struct Options {
    Clock& clock;
    const Http2Limits& limits;
    // Where bytes are read to, shared by all connections of the thread. What the other side does
    // not take at once is kept by the connection, which reads no more until it is gone.
    std::span<char> room;
    // Called once if the caller breaks a rule, with whether it is worth a line of the log.
    std::function<void(const Http2Violation& violation, bool log)> on_refused;
    // Called once, when both sockets are closed.
    std::function<void()> on_closed;
  };

  RelayedConnection(boost::asio::io_context& io, Ends ends, Options options);
  RelayedConnection(const RelayedConnection&) = delete;
  RelayedConnection& operator=(const RelayedConnection&) = delete;

  void Begin();
  // Passes to the caller what gRPC has said so far, and closes.
  void Finish();

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  enum class State { kPassing, kLeaving, kClosed };

  // What was read from one side and not yet taken by the other.
  struct Rest {
    std::string bytes;
    size_t sent = 0;

    std::string_view left() const { return std::string_view(bytes).substr(sent); }
    void Keep(std::string_view more);
    void Sent(size_t count);
  };

  // One pass of each direction, until it would have to wait.
  void Up();
  void Down();
  // Sends what is kept. False: it waits, and the direction goes on by itself, or it has ended.
  bool SendUp();
  bool SendDown();
  // Reads from the caller, and sends on. False as above.
  bool PassUp();
  bool PassDown();

  void Wait(Descriptor& descriptor, Descriptor::wait_type what, void (RelayedConnection::*next)());
  void WaitFor(CallerChannel::Outcome outcome, void (RelayedConnection::*next)());
  // What the connection does wrong, by its own frames or together with others of its address.
  std::optional<Http2Violation> Judge(std::optional<Http2Violation> own);
  void Refuse(const Http2Violation& violation);
  // Everything has been said: waits for the caller's end, so that it can read what was sent last.
  void Part();
  void Drop();
  void CloseWithin(std::chrono::milliseconds time);
  void Close();

  const Options options_;
  Descriptor caller_;
  Descriptor server_;
  boost::asio::steady_timer timer_;
  const std::unique_ptr<CallerChannel> channel_;
  std::unique_ptr<AddressBudgets::Part> part_;
  Http2Guard guard_;
  State state_ = State::kPassing;
  Rest up_;
  Rest down_;
  // Whether TLS has begun to write `down_`: the same bytes must be written again then.
  bool sealed_ = false;
  bool caller_ended_ = false;
  bool server_ended_ = false;
  bool finishing_ = false;
  size_t dropped_ = 0;
};

}  // namespace wan::server
