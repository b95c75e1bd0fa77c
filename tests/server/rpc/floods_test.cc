// Floods of HTTP/2 that gRPC 1.51 does not hold, against a whole server: docs/operate/limits.md.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include "tests/server/rpc/server_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/http2_bytes.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using support::EmptyMessage;
using support::Frame;
using support::HealthCheckHeaders;
using support::Hello;
using support::ResetFrame;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t MemoryNow() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages >> pages;
  return pages * 4096;
}

// Whether connections are over TLS.
class FloodsTest : public ServerTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // the test's own client writes to connections that have ended
    ServerConfig config = DefaultConfig();
    if (GetParam()) {
      const support::Certificate certificate = authority_.Issue();
      config.tls_cert = folder_ + "/cert.pem";
      config.tls_key = folder_ + "/key.pem";
      std::ofstream(config.tls_cert) << certificate.certificate;
      std::ofstream(config.tls_key) << certificate.key;
    }
    Start(config);
    if (GetParam()) {
      channel_ = grpc::CreateChannel(ToString(server_->grpc_address()),
                                     grpc::SslCredentials({authority_.certificate(), "", ""}));
      health_ = grpc::health::v1::Health::NewStub(channel_);
    }
    AwaitHealth(true);
  }

  // Sends the flood over one connection; what the server says until it ends the connection.
  std::string Flood(const std::string& bytes) {
    const int port = server_->grpc_address().port;
    if (GetParam()) {
      return support::AskOverTls(port, {authority_.certificate(), {}, 0, bytes, true});
    }
    support::TcpClient client(port);
    client.Send(bytes);
    return client.ReadToEnd();
  }

  // Sends the same flood several times; the server survives and serves others.
  void ExpectHeld(const std::string& bytes, const std::string& rule, const std::string& reason) {
    constexpr int kConnections = 3;
    const int64_t before = MemoryNow();
    for (int i = 0; i < kConnections; ++i) {
      // Of a connection that the server closes while a caller still sends, the last words may be
      // lost on the way.
      const std::string answer = Flood(bytes);
      if (!GetParam()) {
        EXPECT_THAT(answer, EndsWith(reason));
      }
    }
    EXPECT_LT(MemoryNow() - before, 100 * kMiB);
    EXPECT_TRUE(IsServing()) << "others are answered";
    EXPECT_THAT(Log(), HasSubstr("\"rule\":\"" + rule + "\""));
    EXPECT_EQ(Misused(rule), kConnections);
  }

  double Misused(const std::string& rule) const {
    const HostPort address = server_->metrics_address();
    const auto text = support::PrometheusText::Parse(
        GetParam()
            ? PlainBody(support::AskOverTls(
                  address.port,
                  {authority_.certificate(), {}, 0, "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n"}))
            : support::HttpGet(address.host, address.port, "/metrics")->body);
    EXPECT_TRUE(text.ok()) << text.status();
    return text->Value("wan_grpc_misused_connections_total", {{"reason", rule}}).value_or(-1);
  }

  static std::string PlainBody(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }

  support::CertificateAuthority authority_;
};

TEST_P(FloodsTest, StreamsThoughSettingsAreNeverAcknowledged) {
  std::string flood = Hello();
  for (uint32_t stream = 1; stream < 60'000; stream += 2) {
    flood += Frame(support::kHeaders, support::kEndHeaders, stream, HealthCheckHeaders());
  }
  ExpectHeld(flood, "streams",
             "the connection has more than 1000 open streams, the most that "
             "SETTINGS_MAX_CONCURRENT_STREAMS of this server allows");
}

TEST_P(FloodsTest, HeadersWithoutAnEnd) {
  // A text of 2 GiB begins, and more and more of it comes.
  std::string flood =
      Hello() + Frame(support::kHeaders, 0, 1,
                      HealthCheckHeaders() + std::string("\0\x7f\xff\xff\xff\x07", 6));
  const std::string more = Frame(support::kContinuation, 0, 1, std::string(16'000, 'a'));
  for (int i = 0; i < 4'000; ++i) flood += more;
  ExpectHeld(flood, "header_block", "stream 1: its headers have more than 16384 bytes");
}

TEST_P(FloodsTest, CallsThatAreResetAtOnce) {
  std::string flood = Hello();
  for (uint32_t stream = 1; stream < 60'000; stream += 2) {
    flood += Frame(support::kHeaders, support::kEndHeaders, stream, HealthCheckHeaders()) +
             Frame(support::kData, support::kEndStream, stream, EmptyMessage()) +
             ResetFrame(stream);
  }
  ExpectHeld(flood, "resets",
             "the connection has reset too many calls before they were answered: it may reset 2000 "
             "at once and 100 a second");
}

INSTANTIATE_TEST_SUITE_P(Wires, FloodsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

// What gRPC's own clients do must stay below the limits.
class HonestCallersTest : public ServerTest {};

// As many as a connection may have of calls that anybody may make.
constexpr int kWatches = 510;

TEST_F(HonestCallersTest, AllStreamsAreCancelledAtOnceAndTheConnectionLivesOn) {
  StartServing();
  for (int round = 0; round < 3; ++round) {
    struct Watch {
      grpc::ClientContext context;
      std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>> reader;
    };
    std::vector<std::unique_ptr<Watch>> watches;
    grpc::health::v1::HealthCheckResponse response;
    for (int i = 0; i < kWatches; ++i) {
      auto watch = std::make_unique<Watch>();
      watch->reader = health_->Watch(&watch->context, {});
      ASSERT_TRUE(watch->reader->Read(&response)) << i;
      watches.push_back(std::move(watch));
    }
    EXPECT_TRUE(IsServing());
    for (const auto& watch : watches) watch->context.TryCancel();
    for (const auto& watch : watches) {
      EXPECT_EQ(watch->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    }
  }
  EXPECT_TRUE(IsServing());
  EXPECT_THAT(Log(), ::testing::Not(HasSubstr("misused")));
}

}  // namespace
}  // namespace wan::server
