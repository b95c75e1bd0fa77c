// What callers cost that do not take their answers: docs/operate/limits.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/rpc/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/rpc_errors.h"
#include "tests/support/unread_calls.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {
namespace {

using support::UnreadCalls;
using ::testing::HasSubstr;

constexpr char kListJobs[] = "/wan.v1.VideoGeneration/ListJobs";

class UnreadAnswersTest : public ServerTest {
 protected:
  // Makes jobs, none of which runs, whose list has 3 MiB and some more.
  void MakeLongList() {
    engine_.Hold("T5_Encoding");
    wan::v1::GenerationRequest request = SmallRequest();
    request.set_prompt(std::string(64 << 10, 'x'));
    request.set_negative_prompt(std::string(64 << 10, 'y'));
    for (int i = 0; i < 25; ++i) MustCreate(request);
  }

  support::PrometheusText Scrape() const {
    const HostPort address = server_->metrics_address();
    const auto answer = support::HttpGet(address.host, address.port, "/metrics");
    EXPECT_TRUE(answer.ok()) << answer.status();
    auto parsed = support::PrometheusText::Parse(answer.ok() ? answer->body : "");
    return parsed.ok() ? *std::move(parsed) : support::PrometheusText();
  }
  double AnswerBytes() const { return Scrape().Value("wan_grpc_answer_bytes").value(); }
  double RefusedAnswers() const {
    return Scrape().Value("wan_grpc_refused_calls_total", {{"reason", "answers"}}).value();
  }

  grpc::Status List(const std::shared_ptr<grpc::Channel>& channel,
                    wan::v1::ListJobsResponse* jobs) {
    grpc::ClientContext context;
    return wan::v1::VideoGeneration::NewStub(channel)->ListJobs(&context, {}, jobs);
  }
};

TEST_F(UnreadAnswersTest, AnswersThatNobodyTakesHaveABudgetAndEnd) {
  StartServing();
  MakeLongList();
  wan::v1::ListJobsResponse jobs;
  ASSERT_TRUE(List(channel_, &jobs).ok());
  const auto bytes = static_cast<double>(jobs.ByteSizeLong());
  ASSERT_GT(bytes, 3 << 20);
  // One caller holds half of the 128 MiB, and the server goes on.
  UnreadCalls eve(server_->grpc_address().port);
  constexpr int kCalls = 60;
  for (int i = 0; i < kCalls; ++i) eve.Begin(kListJobs, "");
  while (AnswerBytes() / bytes + RefusedAnswers() < kCalls) {
  }
  EXPECT_GT(AnswerBytes(), 50 << 20);
  EXPECT_LE(AnswerBytes(), 68 << 20);
  EXPECT_TRUE(List(Connect(), &jobs).ok()) << "others are answered";
  const int unread = kCalls - static_cast<int>(RefusedAnswers());
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(AnswerBytes() / bytes, unread);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(eve.AwaitResets(unread));
  while (AnswerBytes() != 0) {
  }
  engine_.Release("T5_Encoding");
}

TEST_F(UnreadAnswersTest, AConnectionThatGoesLetsItsAnswersGo) {
  StartServing();
  MakeLongList();
  {
    UnreadCalls eve(server_->grpc_address().port);
    for (int i = 0; i < 3; ++i) eve.Begin(kListJobs, "");
    while (AnswerBytes() < 9 << 20) {
    }
  }
  while (AnswerBytes() != 0) {
  }
  engine_.Release("T5_Encoding");
}

TEST_F(UnreadAnswersTest, EventsThatNobodyTakesHaveTheSameBudget) {
  StartServing();
  engine_.FailAt("T5_Encoding", absl::InternalError(std::string(4 << 20, 'x')));
  const std::string job = MustCreate().name();
  std::vector<wan::v1::Event> events;
  EXPECT_TRUE(Watch(job, 0, &events).ok());
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  request.set_after_sequence(events.back().sequence() - 1);
  while (AnswerBytes() != 0) {
  }
  UnreadCalls eve(server_->grpc_address().port);
  for (int i = 0; i < 20; ++i) {
    eve.Begin("/wan.v1.VideoGeneration/WatchJob", request.SerializeAsString());
  }
  while (RefusedAnswers() < 4) {
  }
  EXPECT_GT(AnswerBytes(), 64 << 20);
  EXPECT_LT(AnswerBytes(), 65 << 20);
  std::vector<wan::v1::Event> again;
  EXPECT_TRUE(Watch(job, 0, &again).ok()) << "others are told";
  EXPECT_EQ(again.size(), events.size());
}

TEST_F(UnreadAnswersTest, SmallAnswersAndHealthWatchesEndToo) {
  StartServing();
  UnreadCalls eve(server_->grpc_address().port);
  const auto calls = [&](const std::string& method) {
    const auto value = Scrape().Value("wan_grpc_calls_total", {{"method", method}, {"code", "OK"}});
    return value.value_or(0);
  };
  const double before = calls("wan.v1.Telemetry/GetServerInfo");
  for (int i = 0; i < 5; ++i) eve.Begin("/wan.v1.Telemetry/GetServerInfo", "");
  while (calls("wan.v1.Telemetry/GetServerInfo") < before + 5) {
  }
  clock_.Advance(absl::Seconds(60));
  EXPECT_TRUE(eve.AwaitResets(5));
  // The first message of a watch waits to be written when its reset comes.
  eve.Begin("/grpc.health.v1.Health/Watch", "");
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    EXPECT_TRUE(eve.AwaitResets(6));
    ended = true;
  });
  while (!ended) {
    clock_.Advance(absl::Seconds(60));
    Scrape();
  }
  reader.join();
}

TEST_F(UnreadAnswersTest, HealthWatchesTakeNoPlaceOfOtherStreams) {
  StartServing();
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>> reader;
  };
  const auto stub = grpc::health::v1::Health::NewStub(Connect());
  grpc::health::v1::HealthCheckResponse response;
  std::list<Watch> watches;
  // Half of the 1,024 for one connection.
  for (int i = 0; i < 512; ++i) {
    Watch& watch = watches.emplace_back();
    watch.reader = stub->Watch(&watch.context, {});
    ASSERT_TRUE(watch.reader->Read(&response)) << i;
  }
  EXPECT_EQ(Scrape().Value("wan_grpc_streams"), 0);
  Watch further;
  further.reader = stub->Watch(&further.context, {});
  EXPECT_FALSE(further.reader->Read(&response));
  const grpc::Status refused = further.reader->Finish();
  EXPECT_EQ(support::ReasonOf(refused), "SERVER_BUSY");
  EXPECT_THAT(refused.error_message(),
              HasSubstr("this connection has 512 of 1024 open streams that public calls may have"));
  EXPECT_EQ(Scrape().Value("wan_grpc_refused_calls_total", {{"reason", "public"}}), 1);
  AwaitHealth(true);
  for (Watch& watch : watches) watch.context.TryCancel();
}

}  // namespace
}  // namespace wan::server
