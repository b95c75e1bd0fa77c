// The server's side of TLS for connections of Asio.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "server/auth/tls_files.h"

namespace wan::server {

// The protocol inside TLS. A caller that offers protocols without this one gets no connection for
// kHttp2; one that offers none must be looked at after its handshake.
enum class TlsProtocol { kHttp1, kHttp2 };

// Use it on one thread.
class TlsContexts {
 public:
  // The files must outlive the object and its contexts.
  explicit TlsContexts(TlsFiles& files, TlsProtocol protocol = TlsProtocol::kHttp1)
      : files_(files), protocol_(protocol) {}

  // The context for a new connection, which keeps it: TLS 1.2 and 1.3 with what the files hold now.
  // Null if OpenSSL refuses that although the files fit each other, for example a key that is too
  // short for its security level.
  std::shared_ptr<boost::asio::ssl::context> Current();

 private:
  TlsFiles& files_;
  const TlsProtocol protocol_;
  std::shared_ptr<const TlsMaterial> material_;  // of the context
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace wan::server
