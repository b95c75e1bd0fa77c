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
  // The result of an attempt.
  enum class Outcome {
    kDone,
    kWaitToRead,   // repeat it when the socket can be read
    kWaitToWrite,  // repeat it when the socket can be written
    kEnd,          // the caller sends nothing more
    kBroken,       // the connection is lost
  };
  struct Moved {
    Outcome outcome = Outcome::kDone;
    size_t bytes = 0;  // of kDone
  };

  // `tls` is null for plain text; otherwise a server's connection over the same socket. The socket
  // is non-blocking, belongs to the caller of this and must outlive the object.
  CallerChannel(int socket, SslConnection tls) : socket_(socket), tls_(std::move(tls)) {}

  // Null for plain text.
  SSL* tls() const { return tls_.get(); }

  // Goes on with the handshake. kDone at once for plain text.
  Outcome Handshake();
  // kDone has at least one byte.
  Moved Read(std::span<char> room);
  // May write less than all. After kWaitToWrite the same bytes must be written again, though they
  // may have moved and more may follow.
  Moved Write(std::string_view bytes);
  // Signals the end of the data to the caller.
  void EndWriting();

 private:
  Outcome OutcomeOf(int result) const;

  const int socket_;
  const SslConnection tls_;
};

// A TLS connection of a server over the socket. Returns null if there is no memory.
SslConnection AcceptTls(SSL_CTX* context, int socket);

}  // namespace wan::server
