#include "server/calls/tls_contexts.h"

#include <boost/asio/buffer.hpp>
#include <utility>

namespace wan::server {
namespace {

namespace ssl = boost::asio::ssl;

// ALPN callback of OpenSSL: chooses HTTP/2 if the caller offers it.
int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_size, kHttp2, sizeof(kHttp2), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

std::shared_ptr<ssl::context> MakeContext(const TlsMaterial& material, TlsProtocol protocol) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  if (SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION) != 1) return nullptr;
  if (protocol == TlsProtocol::kHttp2) {
    SSL_CTX_set_alpn_select_cb(context->native_handle(), &ChooseHttp2, nullptr);
  }
  // A session ID context is needed: without one, OpenSSL fails resumed handshakes when the server
  // asks for client certificates.
  static constexpr unsigned char kSessions[] = "wanserve";
  SSL_CTX_set_session_id_context(context->native_handle(), kSessions, sizeof(kSessions) - 1);
  boost::system::error_code error;
  context->use_certificate_chain(boost::asio::buffer(material.certificate), error);
  if (!error) {
    context->use_private_key(boost::asio::buffer(material.key), ssl::context::pem, error);
  }
  if (!error && !material.client_ca.empty()) {
    context->add_certificate_authority(boost::asio::buffer(material.client_ca), error);
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  }
  return error ? nullptr : context;
}

}  // namespace

std::shared_ptr<ssl::context> TlsContexts::Current() {
  std::shared_ptr<const TlsMaterial> now = files_.Current();
  if (now != material_) {
    context_ = MakeContext(*now, protocol_);
    material_ = std::move(now);
  }
  return context_;
}

}  // namespace wan::server
