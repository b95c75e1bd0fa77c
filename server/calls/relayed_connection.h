// Passes the bytes of one connection between its caller and gRPC, as long as the caller keeps to
// the rules of Http2Guard and AddressBudgets.
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

// Runs on the thread of its io_context, which keeps the connection alive until it is closed.
class RelayedConnection : public std::enable_shared_from_this<RelayedConnection> {
 public:
  struct Ends {
    // Both sockets are non-blocking; the connection closes them.
    int caller = -1;
    std::unique_ptr<CallerChannel> channel;  // reads and writes `caller`, after the TLS handshake
    int server = -1;                         // the relay's end of the local socket to gRPC
    std::unique_ptr<AddressBudgets::Part> part;
  };
  struct Options {
    Clock& clock;
    const Http2Limits& limits;
    // The read buffer, which all connections of the thread share. If one side does not take all
    // bytes at once, the connection copies the rest and reads no more until they are sent.
    std::span<char> room;
    // The connection calls on_refused once if the caller breaks a rule; `log` says whether to log
    // that.
    std::function<void(const Http2Violation& violation, bool log)> on_refused;
    // The connection calls on_closed once, when both sockets are closed.
    std::function<void()> on_closed;
  };

  RelayedConnection(boost::asio::io_context& io, Ends ends, Options options);
  RelayedConnection(const RelayedConnection&) = delete;
  RelayedConnection& operator=(const RelayedConnection&) = delete;

  void Begin();
  // Sends the caller the bytes that gRPC has written so far, and closes the connection.
  void Finish();
  // Closes at the latest after this time.
  void CloseWithin(std::chrono::milliseconds time);

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  enum class State { kPassing, kLeaving, kClosed };

  // Bytes that were read from one side and are not yet sent to the other.
  struct Rest {
    std::string bytes;
    size_t sent = 0;

    std::string_view left() const { return std::string_view(bytes).substr(sent); }
    void Keep(std::string_view more);
    void Sent(size_t count);
  };

  // Pass bytes to gRPC (Up) and to the caller (Down) until a socket would block.
  void Up();
  void Down();
  // Send the bytes kept from an earlier read. Return false if the socket would block (then Up or
  // Down runs again later) or if the connection has ended.
  bool SendUp();
  bool SendDown();
  // Read from one side and send to the other, as long as neither socket blocks. Return false like
  // SendUp and SendDown.
  bool PassUp();
  bool PassDown();

  void Wait(Descriptor& descriptor, Descriptor::wait_type what, void (RelayedConnection::*next)());
  void WaitFor(CallerChannel::Outcome outcome, void (RelayedConnection::*next)());
  // Returns `own`; if `own` is empty, returns a violation of the limits that all connections of the
  // address share.
  std::optional<Http2Violation> Judge(std::optional<Http2Violation> own);
  void Refuse(const Http2Violation& violation);
  // Call Part when all bytes are sent: it waits until the caller closes, so that the caller can
  // read the last bytes.
  void Part();
  void Drop();
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
  // Whether TLS has begun to write `down_`; then the next write must begin with the same bytes.
  bool sealed_ = false;
  bool caller_ended_ = false;
  bool server_ended_ = false;
  bool finishing_ = false;
  size_t dropped_ = 0;
};

}  // namespace wan::server
