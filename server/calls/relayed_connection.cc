#include "server/calls/relayed_connection.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

namespace wan::server {
namespace {

using boost::system::error_code;
using Outcome = CallerChannel::Outcome;

// Maximum number of reads of one direction in a row; then the thread serves other connections.
constexpr int kReadsInTurn = 4;
// Maximum time for sending gRPC's last bytes or a refusal to the caller.
constexpr std::chrono::milliseconds kLastBytes{10'000};
constexpr std::chrono::milliseconds kLastBytesOfRefused{1'000};
// Closing a socket with unread bytes resets the connection, and the last bytes sent may be lost. So
// before closing, read and drop the caller's bytes, but at most this many.
constexpr size_t kMostDropped = size_t{1} << 20;

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void RelayedConnection::Rest::Keep(std::string_view more) {
  bytes.assign(more);
  sent = 0;
}

void RelayedConnection::Rest::Sent(size_t count) {
  sent += count;
  if (sent < bytes.size()) return;
  bytes = std::string();
  sent = 0;
}

RelayedConnection::RelayedConnection(boost::asio::io_context& io, Ends ends, Options options)
    : options_(std::move(options)),
      caller_(io, ends.caller),
      server_(io, ends.server),
      timer_(io),
      channel_(std::move(ends.channel)),
      part_(std::move(ends.part)),
      guard_(options_.limits, options_.clock) {}

void RelayedConnection::Begin() {
  Up();
  Down();
}

void RelayedConnection::Finish() {
  finishing_ = true;
  Down();
}

void RelayedConnection::Wait(Descriptor& descriptor, Descriptor::wait_type what,
                             void (RelayedConnection::*next)()) {
  descriptor.async_wait(what, [self = shared_from_this(), next](error_code error) {
    if (!error) (self.get()->*next)();
  });
}

void RelayedConnection::WaitFor(Outcome outcome, void (RelayedConnection::*next)()) {
  Wait(caller_, outcome == Outcome::kWaitToRead ? Descriptor::wait_read : Descriptor::wait_write,
       next);
}

void RelayedConnection::Up() {
  for (int i = 0; i < kReadsInTurn; ++i) {
    if (state_ != State::kPassing || caller_ended_ || !SendUp() || !PassUp()) return;
  }
  boost::asio::post(caller_.get_executor(), [self = shared_from_this()] { self->Up(); });
}

bool RelayedConnection::SendUp() {
  while (!up_.left().empty()) {
    const std::string_view left = up_.left();
    const ssize_t sent = send(server_.native_handle(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      up_.Sent(static_cast<size_t>(sent));
    } else if (WouldBlock(errno)) {
      Wait(server_, Descriptor::wait_write, &RelayedConnection::Up);
      return false;
    } else {
      // gRPC has closed its end; Down still reads what gRPC sent before.
      caller_ended_ = true;
      return false;
    }
  }
  return true;
}

bool RelayedConnection::PassUp() {
  const CallerChannel::Moved read = channel_->Read(options_.room);
  switch (read.outcome) {
    case Outcome::kDone:
      break;
    case Outcome::kEnd:
      caller_ended_ = true;
      shutdown(server_.native_handle(), SHUT_WR);
      return false;
    case Outcome::kBroken:
      Close();
      return false;
    default:
      WaitFor(read.outcome, &RelayedConnection::Up);
      return false;
  }
  const std::string_view bytes(options_.room.data(), read.bytes);
  if (const auto violation = Judge(guard_.FromCaller(bytes)); violation.has_value()) {
    Refuse(*violation);
    return false;
  }
  const ssize_t sent = send(server_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  const size_t taken = sent < 0 ? 0 : static_cast<size_t>(sent);
  if (taken < bytes.size()) up_.Keep(bytes.substr(taken));
  return true;
}

void RelayedConnection::Down() {
  for (int i = 0; i < kReadsInTurn; ++i) {
    if (state_ == State::kClosed || !SendDown()) return;
    if (server_ended_) {
      Part();
      return;
    }
    if (!PassDown()) return;
  }
  boost::asio::post(caller_.get_executor(), [self = shared_from_this()] { self->Down(); });
}

bool RelayedConnection::SendDown() {
  while (!down_.left().empty()) {
    const CallerChannel::Moved sent = channel_->Write(down_.left());
    switch (sent.outcome) {
      case Outcome::kDone:
        down_.Sent(sent.bytes);
        sealed_ = false;
        break;
      case Outcome::kWaitToRead:
      case Outcome::kWaitToWrite:
        sealed_ = channel_->tls() != nullptr;
        WaitFor(sent.outcome, &RelayedConnection::Down);
        return false;
      default:
        Close();
        return false;
    }
  }
  return true;
}

bool RelayedConnection::PassDown() {
  const ssize_t read = recv(server_.native_handle(), options_.room.data(), options_.room.size(), 0);
  if (read < 0 && WouldBlock(errno) && !finishing_) {
    Wait(server_, Descriptor::wait_read, &RelayedConnection::Down);
    return false;
  }
  if (read <= 0) {
    server_ended_ = true;
    CloseWithin(kLastBytes);
    return true;
  }
  std::string_view bytes(options_.room.data(), static_cast<size_t>(read));
  if (const auto violation = Judge(guard_.FromServer(bytes)); violation.has_value()) {
    down_.Keep(bytes);
    Refuse(*violation);
    return false;
  }
  while (!bytes.empty()) {
    const CallerChannel::Moved sent = channel_->Write(bytes);
    if (sent.outcome != Outcome::kDone) {
      sealed_ = channel_->tls() != nullptr;
      break;
    }
    bytes.remove_prefix(sent.bytes);
  }
  if (!bytes.empty()) down_.Keep(bytes);
  return true;
}

std::optional<Http2Violation> RelayedConnection::Judge(std::optional<Http2Violation> own) {
  std::string shared = part_->Tell(guard_.unanswered(), guard_.TakeResets());
  if (own.has_value() || shared.empty()) return own;
  return Http2Violation{Http2Rule::kAddress, std::move(shared)};
}

void RelayedConnection::Refuse(const Http2Violation& violation) {
  if (state_ != State::kPassing) return;
  state_ = State::kLeaving;
  options_.on_refused(violation, part_->MayLog());
  // Send gRPC's pending bytes before GOAWAY, because its SETTINGS must be the first frame.
  if (down_.left().empty()) {
    const ssize_t read =
        recv(server_.native_handle(), options_.room.data(), options_.room.size(), 0);
    if (read > 0) {
      down_.Keep({options_.room.data(), static_cast<size_t>(read)});
      guard_.FromServer(down_.left());
    }
  }
  error_code ignored;
  server_.close(ignored);  // closing gRPC's end makes gRPC cancel the calls
  part_.reset();
  server_ended_ = true;
  // GOAWAY must be sent between two frames. gRPC will not complete the frame that it has begun; so
  // remove that frame's bytes if none of them has been sent.
  const size_t unfinished = guard_.unfinished_to_caller();
  if (!sealed_ && down_.left().size() >= unfinished) {
    down_.bytes.resize(down_.bytes.size() - unfinished);
    down_.bytes += guard_.GoAway(violation);
  }
  CloseWithin(kLastBytesOfRefused);
  Down();
}

void RelayedConnection::Part() {
  state_ = State::kLeaving;
  channel_->EndWriting();
  if (finishing_) {
    Close();
    return;
  }
  error_code ignored;
  caller_.cancel(ignored);
  Drop();
}

void RelayedConnection::Drop() {
  if (state_ == State::kClosed) return;
  const CallerChannel::Moved read = channel_->Read(options_.room);
  dropped_ += read.bytes;
  if (read.outcome == Outcome::kDone && dropped_ < kMostDropped) {
    boost::asio::post(caller_.get_executor(), [self = shared_from_this()] { self->Drop(); });
  } else if (read.outcome == Outcome::kWaitToRead) {
    WaitFor(read.outcome, &RelayedConnection::Drop);
  } else {
    Close();
  }
}

void RelayedConnection::CloseWithin(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->Close();
  });
}

void RelayedConnection::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  timer_.cancel();
  error_code ignored;
  server_.close(ignored);
  caller_.close(ignored);
  part_.reset();
  options_.on_closed();
}

}  // namespace wan::server
