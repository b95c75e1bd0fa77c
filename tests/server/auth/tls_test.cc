// TLS of a whole server: who gets a connection, and with which certificate.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/server/auth/authenticated_server.h"
#include "tests/support/certificates.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

using support::Certificate;
using support::CertificateAuthority;
using support::CertificateOptions;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kScrape[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

class TlsTest : public AuthenticatedServerTest {
 protected:
  void Put(const std::string& name, const std::string& text) const {
    // As tools renew certificates: a new file in the place of the old one.
    std::ofstream(folder_ + "/" + name + ".new", std::ios::binary) << text;
    std::filesystem::rename(folder_ + "/" + name + ".new", folder_ + "/" + name);
  }
  void Put(const Certificate& certificate) const {
    Put("cert.pem", certificate.certificate);
    Put("key.pem", certificate.key);
  }

  ServerConfig TlsConfig() const {
    ServerConfig config = DefaultConfig();
    config.tls_cert = folder_ + "/cert.pem";
    config.tls_key = folder_ + "/key.pem";
    return config;
  }

  ServerConfig MutualConfig() const {
    ServerConfig config = TlsConfig();
    Put("ca.pem", clients_.certificate());
    config.tls_client_ca = folder_ + "/ca.pem";
    return config;
  }

  // A channel with a connection of its own.
  std::shared_ptr<grpc::Channel> Dial(const std::string& ca, const Certificate& client = {}) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(ToString(server_->grpc_address()),
                                     grpc::SslCredentials({ca, client.key, client.certificate}),
                                     arguments);
  }

  // Whether health answers over the channel.
  static grpc::StatusCode Ask(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &response).error_code();
  }

  CertificateAuthority authority_;
  CertificateAuthority other_{"another authority"};
  CertificateAuthority clients_{"authority of clients"};
};

TEST_F(TlsTest, TheRightAuthorityGetsAConnectionAndNobodyElse) {
  Put(authority_.Issue());
  Start(TlsConfig());
  EXPECT_EQ(Ask(Dial(authority_.certificate())), grpc::StatusCode::OK);
  EXPECT_EQ(Ask(Dial(other_.certificate())), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, ACertificateOfAnotherHostIsRefused) {
  CertificateOptions options;
  options.subject_alt_name = "DNS:elsewhere.example";
  Put(authority_.Issue(options));
  Start(TlsConfig());
  EXPECT_EQ(Ask(Dial(authority_.certificate())), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedByTheCaller) {
  // The server's clock is a fake one that stands at the beginning of 2026.
  CertificateOptions options;
  options.end = clock_.Now() + absl::Hours(1);
  Put(authority_.Issue(options));
  Start(TlsConfig());
  EXPECT_EQ(Ask(Dial(authority_.certificate())), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, ThereIsNoWayBackToPlainText) {
  Put(authority_.Issue());
  Start(TlsConfig());
  // The fixture's channel is a plain one.
  EXPECT_EQ(Ask(channel_), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, TheMetricsPortSpeaksTlsToo) {
  Put(authority_.Issue());
  Start(TlsConfig());
  const int port = server_->metrics_address().port;
  EXPECT_THAT(support::AskOverTls(port, {authority_.certificate(), {}, 0, kScrape}),
              StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(support::AskOverTls(port, {authority_.certificate(), {}, TLS1_2_VERSION, kScrape}),
              StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(support::AskOverTls(port, {authority_.certificate(), {}, TLS1_1_VERSION, kScrape}),
              IsEmpty());
  EXPECT_THAT(support::AskOverTls(port, {other_.certificate(), {}, 0, kScrape}), IsEmpty());
}

TEST_F(TlsTest, GrpcSpeaksNothingOlderThanTls12) {
  Put(authority_.Issue());
  Start(TlsConfig());
  const int port = server_->grpc_address().port;
  constexpr char kPreface[] = "no preface of HTTP/2";
  // A server that lets the handshake pass answers with its settings.
  const auto ask = [&](int version) {
    return support::AskOverTls(port, {authority_.certificate(), {}, version, kPreface, true});
  };
  EXPECT_THAT(ask(TLS1_2_VERSION), Not(IsEmpty()));
  EXPECT_THAT(ask(TLS1_1_VERSION), IsEmpty());
}

TEST_F(TlsTest, ANewCertificateCountsWhileStreamsAreOpen) {
  Put(authority_.Issue());
  Start(TlsConfig());
  const auto before = Dial(authority_.certificate());
  const auto health = grpc::health::v1::Health::NewStub(before);
  grpc::ClientContext context;
  const auto stream = health->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse response;
  while (stream->Read(&response) &&
         response.status() != grpc::health::v1::HealthCheckResponse::SERVING) {
  }
  // A certificate without its key is half of a renewal: connections go on with the old pair.
  const Certificate renewed = other_.Issue();
  Put("cert.pem", renewed.certificate);
  EXPECT_EQ(Ask(Dial(authority_.certificate())), grpc::StatusCode::OK);
  EXPECT_THAT(Log(), HasSubstr("is not the key of the certificate"));
  Put("key.pem", renewed.key);
  EXPECT_EQ(Ask(Dial(other_.certificate())), grpc::StatusCode::OK);
  EXPECT_EQ(Ask(Dial(authority_.certificate())), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(
      support::AskOverTls(server_->metrics_address().port, {other_.certificate(), {}, 0, kScrape}),
      StartsWith("HTTP/1.1 200 OK"));
  // The stream of before is still there.
  wan::v1::UnloadModelRequest unload;
  unload.set_name("m");
  wan::v1::Model model;
  grpc::ClientContext unloading;
  EXPECT_TRUE(
      wan::v1::ModelManagement::NewStub(before)->UnloadModel(&unloading, unload, &model).ok());
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(TlsTest, MutualTlsWantsACertificateOfTheClientsAuthority) {
  Put(authority_.Issue());
  Start(MutualConfig());
  const std::string& ca = authority_.certificate();
  EXPECT_EQ(Ask(Dial(ca)), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(Dial(ca, other_.Issue())), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(Dial(ca, clients_.Issue())), grpc::StatusCode::OK);
  const int port = server_->metrics_address().port;
  EXPECT_THAT(support::AskOverTls(port, {ca, {}, 0, kScrape}), IsEmpty());
  EXPECT_THAT(support::AskOverTls(port, {ca, other_.Issue(), 0, kScrape}), IsEmpty());
  EXPECT_THAT(support::AskOverTls(port, {ca, clients_.Issue(), 0, kScrape}),
              StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(TlsTest, ASessionIsResumedWhereCertificatesAreAskedFor) {
  Put(authority_.Issue());
  Start(MutualConfig());
  const Certificate client = clients_.Issue();
  const struct {
    int port;
    std::string text;
    bool http2;
  } addresses[] = {{server_->grpc_address().port, "no preface of HTTP/2", true},
                   {server_->metrics_address().port, kScrape, false}};
  for (const int version : {TLS1_2_VERSION, 0}) {
    for (const auto& address : addresses) {
      std::shared_ptr<SSL_SESSION> session;
      const support::TlsRequest request{
          authority_.certificate(), client, version, address.text, address.http2, &session};
      EXPECT_THAT(support::AskOverTls(address.port, request), Not(IsEmpty()));
      ASSERT_NE(session, nullptr);
      EXPECT_THAT(support::AskOverTls(address.port, request), Not(IsEmpty())) << version;
    }
  }
}

TEST_F(TlsTest, TheSubjectIsThePrincipal) {
  Put(authority_.Issue());
  ServerConfig config = MutualConfig();
  config.auth_tokens = TokenFile();
  const auto add = [&](const char* principal, Role role, const char* subject) {
    ASSERT_TRUE(
        AddCredential(TokenFile(),
                      {{principal, role}, absl::UnixEpoch(), Credential::Kind::kSubject, subject})
            .ok());
  };
  add("root", Role::kAdmin, "CN=ops");
  Start(config);
  CertificateOptions options;
  options.common_name = "alice";
  const auto alice = Dial(authority_.certificate(), clients_.Issue(options));
  options.common_name = "ops";
  const auto ops = Dial(authority_.certificate(), clients_.Issue(options));
  constexpr char kListModels[] = "/wan.v1.ModelManagement/ListModels";
  EXPECT_EQ(CallWithRubbish(alice, kListModels, "").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CallWithRubbish(ops, kListModels, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(Log(), HasSubstr(R"("principal":"CN=alice","role":"user")"));
}

}  // namespace
}  // namespace wan::server
