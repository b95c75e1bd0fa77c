// The state that the TLS connections of a port share: OpenSSL contexts, and the pace of their
// handshakes.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "engine/api/clock.h"
#include "server/auth/tls_files.h"
#include "server/calls/handshake_pace.h"

namespace wan::server {

// The protocol that callers speak inside TLS. With kHttp2 the handshake fails if the caller offers
// only other protocols (ALPN); if the caller offers none, the user of the context must check the
// result of the handshake.
enum class TlsProtocol { kHttp1, kHttp2 };

// Use a TlsContexts object on one thread only.
class TlsContexts {
 public:
  // The files must outlive the object and its contexts; the clock must outlive the object.
  explicit TlsContexts(TlsFiles& files, TlsProtocol protocol = TlsProtocol::kHttp1,
                       const Clock& clock = SystemClock())
      : files_(files), protocol_(protocol), pace_(clock) {}

  // Call Take of the pace once for each new connection, before the handshake.
  HandshakePace& pace() { return pace_; }

  // Returns the context for a new connection, with TLS 1.2 and 1.3 and the current certificate, key
  // and authorities; the connection must keep the returned pointer. Null if OpenSSL refuses the
  // files, for example a key that is too short for its security level.
  std::shared_ptr<boost::asio::ssl::context> Current();

 private:
  TlsFiles& files_;
  const TlsProtocol protocol_;
  HandshakePace pace_;
  std::shared_ptr<const TlsMaterial> material_;  // the files' content from which context_ was made
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace wan::server
