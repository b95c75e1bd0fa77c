#include "server/calls/caller_channel.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace wan::server {
namespace {

int SizeOf(size_t bytes) { return static_cast<int>(std::min<size_t>(bytes, INT_MAX)); }

}  // namespace

SslConnection AcceptTls(SSL_CTX* context, int socket) {
  SslConnection tls(SSL_new(context));
  if (tls == nullptr || SSL_set_fd(tls.get(), socket) != 1) return nullptr;
  SSL_set_accept_state(tls.get());
  // SSL_MODE_RELEASE_BUFFERS: an idle connection holds no buffers.
  SSL_set_mode(tls.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
  // Without this option SSL_read returns only after a record with data, so a caller who sends other
  // records endlessly, for example changes of keys, would keep the thread.
  SSL_clear_mode(tls.get(), SSL_MODE_AUTO_RETRY);
  return tls;
}

CallerChannel::Outcome CallerChannel::OutcomeOf(int result) const {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Outcome::kWaitToRead;
    case SSL_ERROR_WANT_WRITE:
      return Outcome::kWaitToWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Outcome::kEnd;
    default:
      return Outcome::kBroken;
  }
}

CallerChannel::Outcome CallerChannel::Handshake() {
  if (tls_ == nullptr) return Outcome::kDone;
  ERR_clear_error();
  const int result = SSL_do_handshake(tls_.get());
  return result == 1 ? Outcome::kDone : OutcomeOf(result);
}

CallerChannel::Moved CallerChannel::Read(std::span<char> room) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    const int result = SSL_read(tls_.get(), room.data(), SizeOf(room.size()));
    if (result > 0) return {Outcome::kDone, static_cast<size_t>(result)};
    return {OutcomeOf(result)};
  }
  const ssize_t result = recv(socket_, room.data(), room.size(), 0);
  if (result > 0) return {Outcome::kDone, static_cast<size_t>(result)};
  if (result == 0) return {Outcome::kEnd};
  return {errno == EAGAIN || errno == EINTR ? Outcome::kWaitToRead : Outcome::kBroken};
}

CallerChannel::Moved CallerChannel::Write(std::string_view bytes) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    const int result = SSL_write(tls_.get(), bytes.data(), SizeOf(bytes.size()));
    if (result > 0) return {Outcome::kDone, static_cast<size_t>(result)};
    return {OutcomeOf(result)};
  }
  const ssize_t result = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (result >= 0) return {Outcome::kDone, static_cast<size_t>(result)};
  return {errno == EAGAIN || errno == EINTR ? Outcome::kWaitToWrite : Outcome::kBroken};
}

void CallerChannel::EndWriting() {
  if (tls_ != nullptr && SSL_is_init_finished(tls_.get()) == 1) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
  }
  shutdown(socket_, SHUT_WR);
}

}  // namespace wan::server
