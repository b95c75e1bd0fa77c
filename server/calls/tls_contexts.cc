#include "server/calls/tls_contexts.h"

#include <boost/asio/buffer.hpp>
#include <utility>

namespace wan::server {
namespace {

namespace ssl = boost::asio::ssl;

std::shared_ptr<ssl::context> MakeContext(const TlsMaterial& material) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  if (SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION) != 1) return nullptr;
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
    context_ = MakeContext(*now);
    material_ = std::move(now);
  }
  return context_;
}

}  // namespace wan::server
