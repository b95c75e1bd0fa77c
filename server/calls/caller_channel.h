// Reads and writes a caller's socket, in plain text or over TLS, without blocking.
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

// Use a channel on one thread at a time. Before writing over TLS, a thread must block or ignore
// SIGPIPE.
class CallerChannel {
 public:
  // The result of one attempt to read, write or shake hands.
  enum class Outcome {
    kDone,
    kWaitToRead,   // repeat the attempt when the socket is readable
    kWaitToWrite,  // repeat the attempt when the socket is writable
    kEnd,          // the caller has closed its side and sends nothing more
    kBroken,       // the connection is lost
  };
  struct Moved {
    Outcome outcome = Outcome::kDone;
    size_t bytes = 0;  // number of bytes moved if the outcome is kDone
  };

  // `tls` is the result of AcceptTls for the same socket; null for plain text. The socket must be
  // non-blocking and outlive the object, which does not close it.
  CallerChannel(int socket, SslConnection tls) : socket_(socket), tls_(std::move(tls)) {}

  // Null if the connection is plain text.
  SSL* tls() const { return tls_.get(); }

  // Continues the TLS handshake. Returns kDone at once for plain text.
  Outcome Handshake();
  // Returns kDone only if at least one byte was read.
  Moved Read(std::span<char> room);
  // Writes the bytes or only the first of them. After kWaitToWrite the next call must begin with
  // the same bytes; these may have moved in memory, and more may follow them.
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
