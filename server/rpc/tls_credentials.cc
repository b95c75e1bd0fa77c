// gRPC's C++ API can watch certificate files only by polling them, and drops a working certificate
// when it meets a pair that does not fit. Its C API asks for the certificate at every connection,
// which is what is used here.
#include "server/rpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/auth/tls_files.h"

namespace wan::server {
namespace {

class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(TlsFiles& files)
      : files_(files),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                files.requires_client_certificate()
                    ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                    : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                &TlsCredentials::Fetch, this))) {}
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  // Callers are identified by the gatekeeper.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls this for every connection.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->FetchConfig(config);
  }

  grpc_ssl_certificate_config_reload_status FetchConfig(
      grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const TlsMaterial> material = files_.Current();
    absl::MutexLock lock(&mutex_);
    if (material == fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    fetched_ = material;
    const grpc_ssl_pem_key_cert_pair pair = {material->key.c_str(), material->certificate.c_str()};
    // gRPC aborts without authorities, also where it asks no client for a certificate. Any will do
    // there: nothing is compared with them.
    const std::string& authorities =
        material->client_ca.empty() ? material->certificate : material->client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  TlsFiles& files_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsMaterial> fetched_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(TlsFiles& files) {
  return std::make_shared<TlsCredentials>(files);
}

}  // namespace wan::server
