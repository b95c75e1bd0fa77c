// Certificates that tests make for themselves.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace wan::support {

struct CertificateOptions {
  std::string common_name = "test";
  std::string subject_alt_name = "IP:127.0.0.1,DNS:localhost";  // as openssl's configuration has it
  absl::Time begin = absl::FromUnixSeconds(1'577'836'800);      // 2020
  absl::Time end = absl::FromUnixSeconds(4'102'444'800);        // 2100
};

// Both in PEM form.
struct Certificate {
  std::string certificate;
  std::string key;
};

// An authority with a key of its own.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& common_name = "test authority");
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;
  ~CertificateAuthority();

  const std::string& certificate() const { return pem_; }
  Certificate Issue(const CertificateOptions& options = {}) const;

 private:
  EVP_PKEY* key_ = nullptr;
  X509* certificate_ = nullptr;
  std::string pem_;
};

struct TlsRequest {
  std::string ca;        // PEM
  Certificate client;    // empty: none
  int most_version = 0;  // of TLS, as OpenSSL numbers them; 0: the newest
  std::string text;      // what to send
  bool http2 = false;    // what the connection is for
  // Where the session is kept, if anywhere; one that is there is resumed.
  std::shared_ptr<SSL_SESSION>* session = nullptr;
};

// Connects to 127.0.0.1, sends the text, and returns what comes until the end; empty if the
// handshake fails or the server ends it.
std::string AskOverTls(int port, const TlsRequest& request);

}  // namespace wan::support
