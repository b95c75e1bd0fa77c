// The server's side of TLS for connections of Asio.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "server/auth/tls_files.h"

namespace wan::server {

// Of one thread.
class TlsContexts {
 public:
  // The files must outlive the object and its contexts.
  explicit TlsContexts(TlsFiles& files) : files_(files) {}

  // The context for a new connection, which keeps it: TLS 1.2 and 1.3 with what the files hold now.
  // Null if OpenSSL refuses that although the files fit each other, for example a key that is too
  // short for its security level.
  std::shared_ptr<boost::asio::ssl::context> Current();

 private:
  TlsFiles& files_;
  std::shared_ptr<const TlsMaterial> material_;  // of the context
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace wan::server
