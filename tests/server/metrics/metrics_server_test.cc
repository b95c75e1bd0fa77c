#include "server/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/exposition.h"
#include "tests/support/gunzip.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class OneGauge final : public ScrapeSource {
  Scrape Collect() const override {
    prometheus::MetricFamily family;
    family.name = "wan_answer";
    family.help = "The answer.";
    family.type = prometheus::MetricType::Gauge;
    family.metric.resize(1);
    family.metric[0].gauge.value = 42;
    return {{family}, {}};
  }
};

// Holds whoever collects until it goes free.
class HeldGauge final : public ScrapeSource {
 public:
  void Free() {
    absl::MutexLock lock(&mutex_);
    free_ = true;
  }

 private:
  Scrape Collect() const override {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&free_));
    return {};
  }

  mutable absl::Mutex mutex_;
  bool free_ ABSL_GUARDED_BY(mutex_) = false;
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

// The answer to a scrape with these fields of the header; its own header is in `head`.
std::string Scraped(int port, const std::string& fields, std::string* head) {
  support::TcpClient client(port);
  EXPECT_TRUE(client.Send("GET /metrics HTTP/1.1\r\n" + fields + "\r\n"));
  const std::string answer = client.ReadToEnd();
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) {
    ADD_FAILURE() << answer;
    return "";
  }
  *head = answer.substr(0, end);
  return answer.substr(end + 4);
}

TEST(MetricsServerTest, FormatAndCompressionAreWhatTheScraperAsksFor) {
  const auto server = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>());
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->address().port;
  const std::string open_metrics = "Accept: application/openmetrics-text;version=1.0.0\r\n";
  const std::string gzip = "Accept-Encoding: gzip\r\n";
  std::string head;

  const std::string text = Scraped(port, "", &head);
  EXPECT_THAT(head, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_THAT(head, HasSubstr("Vary: Accept, Accept-Encoding"));
  EXPECT_THAT(head, ::testing::Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(text, ::testing::EndsWith("wan_answer 42\n"));
  EXPECT_EQ(support::Gunzip(Scraped(port, gzip, &head)), text);
  EXPECT_THAT(head, HasSubstr("Content-Encoding: gzip"));

  const std::string open = Scraped(port, open_metrics, &head);
  EXPECT_THAT(head, HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0; "
                              "charset=utf-8"));
  EXPECT_EQ(open, text + "# EOF\n");
  EXPECT_EQ(support::Gunzip(Scraped(port, gzip + open_metrics, &head)), open);
  // A field may occur several times.
  EXPECT_EQ(Scraped(port, "Accept: text/html\r\n" + open_metrics, &head), open);
}

TEST(MetricsServerTest, ProbesAreAnsweredWithTheReason) {
  std::atomic<bool> stuck = false;
  const auto server = MetricsServer::Start(
      {"127.0.0.1", 0}, std::make_shared<OneGauge>(), {}, nullptr,
      {[&] { return stuck ? absl::DeadlineExceededError("no progress") : absl::OkStatus(); },
       [] { return absl::UnavailableError("no model is ready"); }});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->address().port;
  const auto alive = support::HttpGet("127.0.0.1", port, "/livez");
  ASSERT_TRUE(alive.ok()) << alive.status();
  EXPECT_EQ(alive->status, 200);
  EXPECT_EQ(alive->body, "ok\n");
  stuck = true;
  EXPECT_EQ(support::HttpGet("127.0.0.1", port, "/livez")->status, 503);
  const auto ready = support::HttpGet("127.0.0.1", port, "/readyz?verbose");
  EXPECT_EQ(ready->status, 503);
  EXPECT_EQ(ready->body, "no model is ready\n");
}

// Kubernetes starts a pod again whose probes time out.
TEST(MetricsServerTest, ProbesWaitForNoScrape) {
  const auto source = std::make_shared<HeldGauge>();
  const auto fine = [] { return absl::OkStatus(); };
  const auto server = MetricsServer::Start({"127.0.0.1", 0}, source, {}, nullptr, {fine, fine});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->address().port;
  support::TcpClient probe(port);  // has not asked yet
  // More than there are places.
  std::list<support::TcpClient> scrapes;
  for (size_t i = 0; i < 2 * MetricsServerLimits().connections; ++i) {
    scrapes.emplace_back(port);
    ASSERT_TRUE(scrapes.back().Send("GET /metrics HTTP/1.1\r\n\r\n"));
    if (i % 10 == 0) {
      EXPECT_EQ(support::HttpGet("127.0.0.1", port, "/livez")->status, 200) << i;
    }
  }
  ASSERT_TRUE(probe.Send("GET /readyz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(probe.ReadToEnd(), StartsWith("HTTP/1.1 200"));
  source->Free();
  EXPECT_THAT(scrapes.back().ReadToEnd(), StartsWith("HTTP/1.1 200"));
}

TEST(MetricsServerTest, WithoutHealthThereAreNoProbes) {
  const auto server = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>());
  ASSERT_TRUE(server.ok());
  const int port = (*server)->address().port;
  EXPECT_EQ(support::HttpGet("127.0.0.1", port, "/livez")->status, 404);
  EXPECT_THAT(support::HttpGet("127.0.0.1", port, "/")->body, Not(HasSubstr("/livez")));
}

// Someone who has found the port finds its pages.
TEST(MetricsServerTest, SaysWhichPagesThereAre) {
  const auto fine = [] { return absl::OkStatus(); };
  const auto server = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>(), {},
                                           nullptr, {fine, fine});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->address().port;
  for (const auto& [path, status] : {std::pair{"/", 200}, std::pair{"/?a=b", 200},
                                     std::pair{"/health", 404}, std::pair{"/metrics/", 404}}) {
    const auto answer = support::HttpGet("127.0.0.1", port, path);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, status) << path;
    for (const char* const page : {"/metrics", "/livez", "/readyz"}) {
      EXPECT_THAT(answer->body, HasSubstr(absl::StrCat("GET ", page, ": "))) << path;
    }
  }
}

TEST(MetricsServerTest, EveryPageHasHeadAndTakesTheWholeUrl) {
  const auto fine = [] { return absl::OkStatus(); };
  const auto server = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>(), {},
                                           nullptr, {fine, fine});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto ask = [&](const std::string& line) {
    support::TcpClient client((*server)->address().port);
    EXPECT_TRUE(client.Send(line + " HTTP/1.1\r\n\r\n"));
    return client.ReadToEnd();
  };
  for (const std::string page : {"/", "/metrics", "/livez", "/readyz", "/none"}) {
    const std::string get = ask("GET " + page);
    EXPECT_EQ(ask("HEAD " + page), get.substr(0, get.find("\r\n\r\n") + 4)) << page;
    EXPECT_EQ(ask("GET http://localhost:9464" + page), get) << page;
  }
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

// What callers may do to the port, at and past its edges.
class MetricsServerLimitsTest : public ::testing::Test {
 protected:
  void Start(const MetricsServerLimits& limits) {
    auto started = MetricsServer::Start({"127.0.0.1", 0}, std::make_shared<OneGauge>(), limits);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  int port() const { return server_->address().port; }
  int ScrapeStatus() const {
    const auto answer = support::HttpGet("127.0.0.1", port(), "/metrics");
    return answer.ok() ? answer->status : 0;
  }

  // No limit of time that a test could reach.
  static MetricsServerLimits Patient() {
    MetricsServerLimits limits;
    limits.header_time = std::chrono::hours(1);
    return limits;
  }

  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerLimitsTest, AnswersBesideManyWhoNeverEndTheirHeader) {
  Start(Patient());
  std::list<support::TcpClient> slow;
  for (int i = 0; i < 300; ++i) {
    slow.emplace_back(port());
    slow.back().Send("GET /metrics HTTP/1.1\r\nX-Slow: ");
    if (i % 50 == 0) {
      EXPECT_EQ(ScrapeStatus(), 200) << i;
    }
  }
  EXPECT_EQ(ScrapeStatus(), 200);
}

TEST_F(MetricsServerLimitsTest, OneConnectionMoreClosesTheOldest) {
  MetricsServerLimits limits = Patient();
  limits.connections = 2;
  Start(limits);
  support::TcpClient first(port());
  support::TcpClient second(port());
  // The first still has its place: it is answered.
  ASSERT_TRUE(first.Send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(first.ReadToEnd(), StartsWith("HTTP/1.1 200"));
  support::TcpClient third(port());
  support::TcpClient fourth(port());
  EXPECT_TRUE(second.AwaitByteOrEnd()) << "the oldest one is closed";
  for (support::TcpClient* const kept : {&third, &fourth}) {
    ASSERT_TRUE(kept->Send("GET /metrics HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(kept->ReadToEnd(), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(MetricsServerLimitsTest, ManyConnectionsOfOnePeerCloseNoneOfAnother) {
  MetricsServerLimits limits = Patient();
  limits.connections = 4;
  Start(limits);
  support::TcpClient other(port());
  std::list<support::TcpClient> many;
  for (int i = 0; i < 20; ++i) many.emplace_back(port(), "127.0.0.2");
  EXPECT_TRUE(many.front().AwaitByteOrEnd());
  ASSERT_TRUE(other.Send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(other.ReadToEnd(), StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsServerLimitsTest, AHeaderThatDoesNotEndInItsTimeIsClosed) {
  MetricsServerLimits limits;
  limits.header_time = std::chrono::milliseconds(20);
  Start(limits);
  support::TcpClient client(port());
  // Bytes that trickle in do not extend the time: sending goes on until the server has closed.
  ASSERT_TRUE(client.Send("GET /metrics HTTP/1.1\r\nX-Slow: "));
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(ScrapeStatus(), 200);
}

TEST_F(MetricsServerLimitsTest, AHeaderMayHaveItsBytesAndNoMore) {
  Start(Patient());
  const std::string line = "GET /metrics HTTP/1.1\r\n";
  const std::string name = "X-Long: ";
  const std::string end = "\r\n\r\n";
  const size_t most = MetricsServerLimits().header_bytes - name.size() - end.size();
  support::TcpClient fits(port());
  ASSERT_TRUE(fits.Send(line + name + std::string(most, 'x') + end));
  EXPECT_THAT(fits.ReadToEnd(), StartsWith("HTTP/1.1 200"));
  support::TcpClient too_long(port());
  too_long.Send(line + name + std::string(most + 1, 'x') + end);
  EXPECT_EQ(too_long.ReadToEnd(), "");
}

TEST_F(MetricsServerLimitsTest, ABodyIsRefusedUnread) {
  Start(Patient());
  support::TcpClient client(port());
  ASSERT_TRUE(client.Send("POST /metrics HTTP/1.1\r\nContent-Length: 300000000\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 405"));
}

TEST_F(MetricsServerLimitsTest, HeadHasTheSizeAndNoBody) {
  Start(Patient());
  support::TcpClient client(port());
  ASSERT_TRUE(client.Send("HEAD /metrics HTTP/1.1\r\n\r\n"));
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: "));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(MetricsServerLimitsTest, EndsWithOpenConnections) {
  Start(Patient());
  support::TcpClient silent(port());
  server_.reset();
  EXPECT_TRUE(silent.AwaitByteOrEnd());
}

}  // namespace
}  // namespace wan::server
