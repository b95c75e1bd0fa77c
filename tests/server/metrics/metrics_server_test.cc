#include "server/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class OneGauge final : public prometheus::Collectable {
  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::MetricFamily family;
    family.name = "wan_answer";
    family.help = "The answer.";
    family.type = prometheus::MetricType::Gauge;
    family.metric.resize(1);
    family.metric[0].gauge.value = 42;
    return {family};
  }
};

TEST(MetricsServerTest, PortZeroTakesAFreePortAndServesTheText) {
  const auto server = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->address().host, "127.0.0.1");
  ASSERT_GT((*server)->address().port, 0);
  const auto answer = support::HttpGet("127.0.0.1", (*server)->address().port, "/metrics");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->content_type, StartsWith("text/plain"));
  const auto text = support::PrometheusText::Parse(answer->body);
  ASSERT_TRUE(text.ok()) << text.status() << "\n" << answer->body;
  EXPECT_EQ(text->Value("wan_answer"), 42);
  EXPECT_EQ(support::HttpGet("127.0.0.1", (*server)->address().port, "/other")->status, 404);
}

TEST(MetricsServerTest, AnAddressThatCannotBeHadIsAnErrorThatNamesIt) {
  const auto first = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>());
  ASSERT_TRUE(first.ok());
  const HostPort taken = (*first)->address();
  const auto second = MetricsServer::Start(taken, std::make_shared<OneGauge>());
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("metrics_listen: cannot listen on " + ToString(taken) + ": the port"));
  // An address of TEST-NET-1 is nobody's.
  EXPECT_TRUE(absl::IsUnavailable(
      MetricsServer::Start({"192.0.2.1", 0}, std::make_shared<OneGauge>()).status()));
}

TEST(MetricsServerTest, Ipv6) {
  const auto server = MetricsServer::Start({"::1", 0}, std::make_shared<OneGauge>());
  if (!server.ok()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ((*server)->address().host, "::1");
  const auto answer = support::HttpGet("::1", (*server)->address().port, "/metrics");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
}

TEST(MetricsServerTest, ThePortIsFreeAgainAfterwards) {
  auto server = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>());
  ASSERT_TRUE(server.ok());
  const HostPort address = (*server)->address();
  server->reset();
  EXPECT_TRUE(MetricsServer::Start(address, std::make_shared<OneGauge>()).ok());
}

}  // namespace
}  // namespace wan::server
