#include "server/webhooks/webhook_transport.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/certificates.h"
#include "tests/support/http_receiver.h"

namespace wan::server {
namespace {

using support::HttpReceiver;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const WebhookMessage kMessage{{{"content-type", "application/json"}, {"webhook-id", "msg_1"}},
                              R"({"a": 1})"};

class WebhookTransportTest : public ::testing::Test {
 protected:
  // The rules that let a test reach its own server.
  static WebhookRules Local() { return {{}, true, true}; }

  HttpReceiver receiver_;
};

TEST_F(WebhookTransportTest, PostsTheMessage) {
  CurlTransport transport(Local());
  const auto status = transport.Post(receiver_.Url("/x?y=z"), kMessage, {});
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, 200);
  const auto posts = receiver_.Await(1);
  EXPECT_EQ(posts[0].path, "/x");
  EXPECT_EQ(posts[0].body, kMessage.body);
  EXPECT_EQ(posts[0].fields.at("content-type"), "application/json");
  EXPECT_EQ(posts[0].fields.at("webhook-id"), "msg_1");
}

// Certificates of an authority of our own, which no system trusts.
class SecureTransportTest : public WebhookTransportTest {
 protected:
  SecureTransportTest() { std::ofstream(ca_file_) << authority_.certificate(); }
  ~SecureTransportTest() override { std::filesystem::remove(ca_file_); }

  static WebhookRules OnlyHttps() { return {{}, /*allow_http=*/false, true}; }

  const support::CertificateAuthority authority_;
  const std::string ca_file_ =
      testing::TempDir() + "webhook_ca_" + std::to_string(getpid()) + ".pem";
};

TEST_F(SecureTransportTest, PostsOverTlsToWhomeverTheAuthorityNames) {
  support::HttpReceiver receiver(authority_.Issue());
  CurlTransport transport(OnlyHttps(), {}, ca_file_);
  const auto status = transport.Post(receiver.Url("/x"), kMessage, {});
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, 200);
  EXPECT_EQ(receiver.Await(1)[0].body, kMessage.body);
}

TEST_F(SecureTransportTest, OthersAreToldNothing) {
  const auto expect_refused = [&](const support::Certificate& certificate, const std::string& ca) {
    support::HttpReceiver receiver(certificate);
    CurlTransport transport(OnlyHttps(), {}, ca);
    const auto refused = transport.Post(receiver.Url("/x"), kMessage, {});
    EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
    EXPECT_THAT(receiver.Await(0), SizeIs(0));
  };
  {
    SCOPED_TRACE("an authority that the system does not know");
    expect_refused(authority_.Issue(), "");
  }
  {
    SCOPED_TRACE("another authority");
    expect_refused(support::CertificateAuthority("another").Issue(), ca_file_);
  }
  {
    SCOPED_TRACE("another host");
    support::CertificateOptions other;
    other.subject_alt_name = "DNS:hooks.example.com";
    expect_refused(authority_.Issue(other), ca_file_);
  }
  {
    SCOPED_TRACE("expired");
    support::CertificateOptions expired;
    expired.end = absl::FromUnixSeconds(1'600'000'000);
    expect_refused(authority_.Issue(expired), ca_file_);
  }
  {
    SCOPED_TRACE("no file of authorities");
    expect_refused(authority_.Issue(), ca_file_ + ".missing");
  }
}

TEST_F(WebhookTransportTest, TheAnswersBodyIsNotRead) {
  receiver_.AnswerWith(503, std::string(10 << 20, 'x'));
  CurlTransport transport(Local());
  EXPECT_EQ(*transport.Post(receiver_.Url("/"), kMessage, {}), 503);
}

TEST_F(WebhookTransportTest, ARedirectIsNotFollowed) {
  HttpReceiver other;
  receiver_.AnswerWith(307, "", other.Url("/stolen"));
  CurlTransport transport(Local());
  EXPECT_EQ(*transport.Post(receiver_.Url("/"), kMessage, {}), 307);
  EXPECT_THAT(other.Await(0), SizeIs(0));
}

// Also by a name, which is looked up first: what it resolves to is what counts.
TEST_F(WebhookTransportTest, PrivateAddressesAreRefusedAfterTheNameIsResolved) {
  CurlTransport transport({{}, true, /*allow_private=*/false});
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const auto refused = transport.Post(
        "http://" + host + ":" + std::to_string(receiver_.port()) + "/", kMessage, {});
    ASSERT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("private network"));
  }
  EXPECT_THAT(receiver_.Await(0), SizeIs(0));
}

TEST_F(WebhookTransportTest, HttpIsRefusedUnlessItIsAllowed) {
  CurlTransport transport({{}, /*allow_http=*/false, true});
  EXPECT_FALSE(transport.Post(receiver_.Url("/"), kMessage, {}).ok());
  EXPECT_THAT(receiver_.Await(0), SizeIs(0));
}

TEST_F(WebhookTransportTest, NoProxyOfTheEnvironmentIsUsed) {
  HttpReceiver proxy;
  setenv("http_proxy", proxy.Url("").c_str(), 1);
  CurlTransport transport(Local());
  EXPECT_EQ(*transport.Post(receiver_.Url("/"), kMessage, {}), 200);
  unsetenv("http_proxy");
  EXPECT_THAT(proxy.Await(0), SizeIs(0));
}

TEST_F(WebhookTransportTest, WhoeverDoesNotAnswerIsLeft) {
  // A listener that nobody accepts from.
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(silent, 1), 0);
  socklen_t size = sizeof(address);
  ::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  TransportLimits limits;
  limits.whole_time = std::chrono::milliseconds(50);
  CurlTransport quick(Local(), limits);
  EXPECT_TRUE(absl::IsUnavailable(quick.Post(url, kMessage, {}).status()));
  // A stop ends the wait as well.
  std::stop_source stop;
  stop.request_stop();
  CurlTransport patient(Local());
  EXPECT_FALSE(patient.Post(url, kMessage, stop.get_token()).ok());
  ::close(silent);
}

}  // namespace
}  // namespace wan::server
