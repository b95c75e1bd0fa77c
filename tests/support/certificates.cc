#include "tests/support/certificates.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

namespace wan::support {
namespace {

template <typename Write>
std::string Pem(const Write& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(bio), 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Not signed, without extensions and issuer.
X509* NewCertificate(EVP_PKEY* key, const CertificateOptions& options) {
  X509* const certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  unsigned char serial[8] = {};
  RAND_bytes(serial, sizeof(serial));
  serial[0] &= 0x7F;
  BIGNUM* const number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);
  ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(options.begin));
  ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(options.end));
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.common_name.c_str()),
                             -1, -1, 0);
  return certificate;
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string PemOf(EVP_PKEY* key) {
  return Pem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

BIO* BioOf(const std::string& text) {
  return BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
}

void UseClient(SSL_CTX* context, const Certificate& client) {
  if (client.certificate.empty()) return;
  BIO* const certificate_bio = BioOf(client.certificate);
  X509* const certificate = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  BIO* const key_bio = BioOf(client.key);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  EXPECT_EQ(SSL_CTX_use_certificate(context, certificate), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
  EVP_PKEY_free(key);
  X509_free(certificate);
  BIO_free(key_bio);
  BIO_free(certificate_bio);
}

}  // namespace

CertificateAuthority::CertificateAuthority(const std::string& common_name)
    : key_(EVP_EC_gen("P-256")) {
  CertificateOptions options;
  options.common_name = common_name;
  certificate_ = NewCertificate(key_, options);
  X509_set_issuer_name(certificate_, X509_get_subject_name(certificate_));
  AddExtension(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate_, certificate_, NID_key_usage, "critical,keyCertSign,cRLSign");
  AddExtension(certificate_, certificate_, NID_subject_key_identifier, "hash");
  EXPECT_GT(X509_sign(certificate_, key_, EVP_sha256()), 0);
  pem_ = PemOf(certificate_);
}

CertificateAuthority::~CertificateAuthority() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

Certificate CertificateAuthority::Issue(const CertificateOptions& options) const {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = NewCertificate(key, options);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate_));
  AddExtension(certificate, certificate_, NID_subject_alt_name, options.subject_alt_name);
  EXPECT_GT(X509_sign(certificate, key_, EVP_sha256()), 0);
  Certificate issued{PemOf(certificate), PemOf(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

std::string AskOverTls(int port, const TlsRequest& request) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  // Old versions need ciphers that OpenSSL's default level does not have.
  SSL_CTX_set_security_level(context, request.most_version == 0 ? 1 : 0);
  SSL_CTX_set_max_proto_version(context, request.most_version);
  BIO* const ca_bio = BioOf(request.ca);
  X509* const ca = PEM_read_bio_X509(ca_bio, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  UseClient(context, request.client);
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  if (request.http2) SSL_CTX_set_alpn_protos(context, kHttp2, sizeof(kHttp2));

  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, socket);
  if (request.session != nullptr && *request.session != nullptr) {
    SSL_set_session(ssl, request.session->get());
  }
  std::string answer;
  if (SSL_connect(ssl) == 1 &&
      SSL_write(ssl, request.text.data(), static_cast<int>(request.text.size())) > 0) {
    char bytes[4096];
    for (int count = 0; (count = SSL_read(ssl, bytes, sizeof(bytes))) > 0;) {
      answer.append(bytes, static_cast<size_t>(count));
    }
    if (request.session != nullptr) request.session->reset(SSL_get1_session(ssl), SSL_SESSION_free);
  }
  SSL_free(ssl);
  close(socket);
  X509_free(ca);
  BIO_free(ca_bio);
  SSL_CTX_free(context);
  return answer;
}

}  // namespace wan::support
