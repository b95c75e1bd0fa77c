// wanctl and the client library against a server that wants to know its callers.
#include "client/wanctl/wanctl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/connection.h"
#include "tests/server/auth/authenticated_server.h"
#include "tests/support/certificates.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WanctlSecurityTest : public AuthenticatedServerTest {
 protected:
  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }

  void StartWithTls(bool clients) {
    const support::Certificate issued = authority_.Issue();
    ServerConfig config = AuthenticatedConfig();
    config.tls_cert = Put("cert.pem", issued.certificate);
    config.tls_key = Put("key.pem", issued.key);
    if (clients) config.tls_client_ca = ca_;
    Start(config);
  }

  // Returns the exit code; err_ has what was written on stderr.
  int Run(std::vector<std::string> arguments, const std::string& environment_token = "") {
    if (server_ != nullptr) {
      arguments.insert(arguments.begin(), {"--server", ToString(server_->grpc_address())});
    }
    std::ostringstream out;
    std::ostringstream err;
    const int code =
        client::RunWanctl(arguments, {.console = {out, err}, .default_token = environment_token});
    err_ = err.str();
    return code;
  }

  support::CertificateAuthority authority_;
  std::string ca_ = Put("ca.pem", authority_.certificate());
  std::string token_ = NewTokenOf("alice", Role::kUser);
  std::string err_;
};

TEST_F(WanctlSecurityTest, TheTokenComesFromAFileOrTheEnvironment) {
  Start(AuthenticatedConfig());
  EXPECT_EQ(Run({"list"}), 3);
  EXPECT_THAT(err_, HasSubstr("UNAUTHENTICATED"));
  EXPECT_EQ(Run({"list"}, token_), 0) << err_;
  EXPECT_EQ(Run({"list", "--token-file", Put("token", token_ + "\n")}), 0) << err_;
  EXPECT_EQ(Run({"list", "--token-file", Put("token", NewToken())}, token_), 3);
  EXPECT_EQ(Run({"list", "--token-file", folder_ + "/none"}, token_), 2);
  EXPECT_THAT(err_, HasSubstr("--token-file " + folder_ + "/none: cannot be read"));
  EXPECT_EQ(Run({"list", "--token-file", Put("token", "\n")}), 2);
  EXPECT_EQ(Run({"list", "--token-file", Put("token", "two words")}), 2);
  EXPECT_EQ(Run({"list", "--token", token_}), 2);
}

TEST_F(WanctlSecurityTest, TlsWantsTheRightAuthority) {
  StartWithTls(false);
  EXPECT_EQ(Run({"list", "--tls-ca", ca_}, token_), 0) << err_;
  const support::CertificateAuthority other("another authority");
  EXPECT_EQ(
      Run({"list", "--timeout", "3", "--tls-ca", Put("other.pem", other.certificate())}, token_),
      6);
  // Plain text is no way around.
  EXPECT_EQ(Run({"list", "--timeout", "3"}, token_), 6);
  EXPECT_EQ(Run({"list", "--tls-ca", folder_ + "/none"}, token_), 2);
  EXPECT_EQ(Run({"list", "--tls-ca", ca_, "--tls-cert", ca_}, token_), 2);
  EXPECT_THAT(err_, HasSubstr("--tls-cert and --tls-key belong together"));
}

TEST_F(WanctlSecurityTest, AClientCertificateIsEnough) {
  StartWithTls(true);
  const support::Certificate client = authority_.Issue();
  EXPECT_EQ(Run({"list", "--tls-ca", ca_, "--tls-cert", Put("client.pem", client.certificate),
                 "--tls-key", Put("client.key", client.key)}),
            0)
      << err_;
}

TEST_F(WanctlSecurityTest, ATokenIsNotSentInPlainTextToAnotherMachine) {
  for (const char* const server : {"gpu1:50051", "192.0.2.1:50051", "[2001:db8::1]:50051"}) {
    EXPECT_EQ(Run({"list", "--server", server}, token_), 2) << server;
    EXPECT_THAT(err_, AllOf(HasSubstr(server), HasSubstr("--allow-plaintext-token"),
                            Not(HasSubstr(token_))));
    client::ConnectionOptions options;
    options.server = server;
    options.token = token_;
    EXPECT_TRUE(absl::IsFailedPrecondition(client::CheckToken(options)));
    const client::Connection connection(options);
    bool called = false;
    EXPECT_TRUE(absl::IsFailedPrecondition(connection.Call({}, [&](const auto&, auto&) {
      called = true;
      return grpc::Status::OK;
    })));
    EXPECT_FALSE(called);
    options.allow_plaintext_token = true;
    EXPECT_TRUE(client::CheckToken(options).ok());
    options.allow_plaintext_token = false;
    options.tls = true;
    EXPECT_TRUE(client::CheckToken(options).ok());
  }
  for (const char* const server : {"localhost:1", "127.0.0.1:1", "127.1.2.3:1", "[::1]:1"}) {
    client::ConnectionOptions options;
    options.server = server;
    options.token = token_;
    EXPECT_TRUE(client::CheckToken(options).ok()) << server;
  }
}

}  // namespace
}  // namespace wan::server
