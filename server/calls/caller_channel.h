// Reads and writes the socket of a caller, in plain text or over TLS, without waiting.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace wan::server {

struct SslFree {
  void operator()(SSL* connection) const { SSL_free(connection); }
};
using SslConnection = std::unique_ptr<SSL, SslFree>;

// Use it on one thread at a time. A thread that writes over TLS must have SIGPIPE blocked or
// ignored.
class CallerChannel {
 public:
  // The result of one attempt.
  enum class Outcome {
    kDone,
    kWaitToRead,   // repeat the attempt when the socket is readable
    kWaitToWrite,  // repeat the attempt when the socket is writable
    kEnd,          // the caller sends nothing more
    kBroken,       // the connection is lost
  };
  struct Moved {
    Outcome outcome = Outcome::kDone;
    size_t bytes = 0;  // number of bytes if kDone
  };

  // `tls` is the result of AcceptTls for the same socket; null for plain text. The socket must be
  // non-blocking and outlive the object, which does not own it.
  CallerChannel(int socket, SslConnection tls) : socket_(socket), tls_(std::move(tls)) {}

  // Null for plain text.
  SSL* tls() const { return tls_.get(); }

  // Continues the TLS handshake. Returns kDone for plain text.
  Outcome Handshake();
  // Reads at least one byte if it returns kDone.
  Moved Read(std::span<char> room);
  // May write only a part. After kWaitToWrite the next call must begin with the same bytes; they
  // may be at another address, and more may follow.
  Moved Write(std::string_view bytes);
  // Tells the caller that no more data follows.
  void EndWriting();

 private:
  Outcome OutcomeOf(int result) const;

  const int socket_;
  const SslConnection tls_;
};

// Returns a server's TLS connection over the socket; null if there is no memory.
SslConnection AcceptTls(SSL_CTX* context, int socket);

}  // namespace wan::server
