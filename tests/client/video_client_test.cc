#include "client/video_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/error.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/fakes/events.h"
#include "tests/client/fakes/recording_backoff_clock.h"
#include "tests/client/fakes/scripted_server.h"
#include "tests/client/fakes/tcp_relay.h"

namespace wan::client {
namespace {

using fakes::Completed;
using fakes::Preview;
using fakes::Queued;
using fakes::StageStarted;
using fakes::Stream;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wan::v1::Event;

class VideoClientTest : public testing::Test {
 protected:
  EventCallback Remember() {
    return [this](const Event& event) { sequences_.push_back(event.sequence()); };
  }

  fakes::ScriptedServer server_;
  const Connection connection_{{.server = server_.address()}};
  fakes::RecordingBackoffClock clock_;
  const VideoClient videos_{connection_, {.max_retries = 3}, clock_};
  std::vector<int64_t> sequences_;
};

TEST_F(VideoClientTest, GenerateGivesEveryEventAndReturnsTheLast) {
  fakes::Requests<wan::v1::GenerateRequest> requests;
  server_.scripts.generate = [&](const wan::v1::GenerateRequest& request) {
    requests.Add(request);
    return Stream<Event>{
        {Queued(1), StageStarted(2, "T5_Encoding"), Preview(1, "jpeg"), Completed(3)}};
  };
  wan::v1::GenerationRequest request;
  request.set_prompt("a cat");
  const absl::StatusOr<Event> end = videos_.Generate(request, Remember());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->has_completed());
  EXPECT_THAT(sequences_, ElementsAre(1, 2, 0, 3));
  ASSERT_EQ(requests.All().size(), 1u);
  EXPECT_EQ(requests.All()[0].request().prompt(), "a cat");
}

TEST_F(VideoClientTest, AFailedJobIsNoErrorOfTheCall) {
  server_.scripts.generate = [](const auto&) {
    return Stream<Event>{{Queued(1), fakes::Failed(2, 13, "out of memory")},
                         grpc::Status(grpc::StatusCode::INTERNAL, "out of memory")};
  };
  const absl::StatusOr<Event> end = videos_.Generate({}, Remember());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->failed().status().message(), "out of memory");
}

TEST_F(VideoClientTest, ARejectedRequestComesWithItsDetails) {
  server_.scripts.generate = [](const auto&) {
    google::rpc::BadRequest details;
    auto* violation = details.add_field_violations();
    violation->set_field("steps");
    violation->set_description("0 is below 1");
    return Stream<Event>{
        {}, fakes::ErrorWith(grpc::StatusCode::INVALID_ARGUMENT, "1 field is wrong", {&details})};
  };
  const absl::Status status = videos_.Generate({}, Remember()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(DetailsOf(status).violations, ElementsAre(FieldViolation{"steps", "0 is below 1"}));
  EXPECT_THAT(sequences_, IsEmpty());
}

TEST_F(VideoClientTest, AHundredViolationsArrive) {
  server_.scripts.generate = [](const auto&) {
    google::rpc::BadRequest details;
    for (int i = 0; i < 100; ++i) {
      auto* violation = details.add_field_violations();
      violation->set_field(absl::StrCat("guidance_scale[", i, "]"));
      violation->set_description(std::string(200, 'x'));
    }
    return Stream<Event>{{},
                         fakes::ErrorWith(grpc::StatusCode::INVALID_ARGUMENT, "many", {&details})};
  };
  EXPECT_EQ(DetailsOf(videos_.Generate({}, Remember()).status()).violations.size(), 100u);
}

TEST_F(VideoClientTest, GenerateIsNotTriedAgain) {
  int calls = 0;
  server_.scripts.generate = [&](const auto&) {
    ++calls;
    return Stream<Event>{{Queued(1)}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  EXPECT_EQ(videos_.Generate({}, Remember()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(clock_.delays, IsEmpty());
}

TEST_F(VideoClientTest, AStreamThatEndsBeforeTheJobIsDataLoss) {
  server_.scripts.generate = [](const auto&) { return Stream<Event>{{Queued(1)}}; };
  EXPECT_EQ(videos_.Generate({}, Remember()).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(VideoClientTest, AStopCancelsTheCallOnTheServer) {
  absl::Notification cancelled;
  server_.scripts.generate = [&](const auto&) {
    return Stream<Event>{
        .messages = {Queued(1)}, .hold = true, .on_cancel = [&] { cancelled.Notify(); }};
  };
  std::stop_source stop;
  const absl::StatusOr<Event> end = videos_.Generate(
      {}, [&](const Event&) { stop.request_stop(); }, stop.get_token());
  EXPECT_EQ(end.status().code(), absl::StatusCode::kCancelled);
  cancelled.WaitForNotification();
}

TEST_F(VideoClientTest, WatchGoesOnAfterTheLastSequence) {
  fakes::Requests<wan::v1::WatchJobRequest> requests;
  server_.scripts.watch_job = [&](const wan::v1::WatchJobRequest& request) {
    requests.Add(request);
    const grpc::Status gone(grpc::StatusCode::UNAVAILABLE, "gone");
    switch (requests.All().size()) {
      case 1:
        return Stream<Event>{{Queued(5), StageStarted(6, "a"), Preview(1, "jpeg")}, gone};
      case 2:
        return Stream<Event>{{}, gone};
      case 3:
        return Stream<Event>{{StageStarted(7, "b")}, gone};
      default:
        return Stream<Event>{{Completed(8)}};
    }
  };
  const absl::StatusOr<Event> end = videos_.WatchJob("jobs/a1", 4, Remember());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->has_completed());
  EXPECT_THAT(sequences_, ElementsAre(5, 6, 0, 7, 8));
  std::vector<int64_t> after;
  for (const auto& request : requests.All()) {
    EXPECT_EQ(request.name(), "jobs/a1");
    after.push_back(request.after_sequence());
  }
  EXPECT_THAT(after, ElementsAre(4, 6, 6, 7));
  // The second failure in a row waits longer; an event starts the delays over.
  EXPECT_THAT(clock_.delays, ElementsAre(absl::Milliseconds(200), absl::Milliseconds(400),
                                         absl::Milliseconds(200)));
}

TEST_F(VideoClientTest, WatchGivesUpInTheEnd) {
  int calls = 0;
  server_.scripts.watch_job = [&](const auto&) {
    ++calls;
    return Stream<Event>{{}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  EXPECT_EQ(videos_.WatchJob("jobs/a1", 0, Remember()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls, 4);
}

TEST_F(VideoClientTest, WatchOfNoJobIsNotTriedAgain) {
  server_.scripts.watch_job = [](const auto&) {
    return Stream<Event>{{}, grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job")};
  };
  EXPECT_EQ(videos_.WatchJob("jobs/a1", 0, Remember()).status(),
            absl::NotFoundError("no such job"));
  EXPECT_THAT(clock_.delays, IsEmpty());
}

TEST_F(VideoClientTest, AStopEndsTheWait) {
  server_.scripts.watch_job = [](const auto&) {
    return Stream<Event>{{}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  std::stop_source stop;
  clock_.on_wait = [&] { stop.request_stop(); };
  EXPECT_EQ(videos_.WatchJob("jobs/a1", 0, Remember(), stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(clock_.delays.size(), 1u);
}

// The TCP connection itself breaks, twice.
TEST_F(VideoClientTest, WatchSurvivesABrokenConnection) {
  fakes::TcpRelay relay(server_.port());
  const Connection connection({.server = relay.address()});
  const VideoClient videos(connection, {.max_retries = 3}, clock_);
  server_.scripts.watch_job = [](const wan::v1::WatchJobRequest& request) {
    const int64_t next = request.after_sequence() + 1;
    if (next == 5) return Stream<Event>{{Completed(5)}};
    return Stream<Event>{.messages = {Queued(next), Queued(next + 1)}, .hold = true};
  };
  const absl::StatusOr<Event> end = videos.WatchJob("jobs/a1", 0, [&](const Event& event) {
    sequences_.push_back(event.sequence());
    if (event.sequence() == 2 || event.sequence() == 4) relay.BreakConnections();
  });
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(sequences_, ElementsAre(1, 2, 3, 4, 5));
}

// Nothing but the attempts counts here: no time passes on the clock.
TEST_F(VideoClientTest, TheFirstAttemptAfterTheServersReturnConnects) {
  server_.scripts.watch_job = [](const wan::v1::WatchJobRequest& request) {
    if (request.after_sequence() == 1) return Stream<Event>{{Completed(2)}};
    return Stream<Event>{.messages = {Queued(1)}, .hold = true};
  };
  constexpr int kAttemptsWithoutServer = 20;
  const VideoClient videos(connection_, {.max_retries = 100}, clock_);
  clock_.on_wait = [this] {
    if (clock_.delays.size() == kAttemptsWithoutServer) server_.Restart();
  };
  std::thread stopper;
  const absl::StatusOr<Event> end = videos.WatchJob("jobs/a1", 0, [&](const Event& event) {
    sequences_.push_back(event.sequence());
    if (event.sequence() == 1) stopper = std::thread([this] { server_.Stop(); });
  });
  stopper.join();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(sequences_, ElementsAre(1, 2));
  EXPECT_EQ(clock_.delays.size(), kAttemptsWithoutServer);
}

// The bound on the time until a client is back: the longest delay, and the attempt itself.
TEST_F(VideoClientTest, ByDefaultNoRetryWaitsForMoreThanASecond) {
  server_.scripts.watch_job = [](const auto&) {
    return Stream<Event>{{}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  const VideoClient videos(connection_, {}, clock_);
  EXPECT_EQ(videos.WatchJob("jobs/a1", 0, Remember()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_LE(*std::max_element(clock_.delays.begin(), clock_.delays.end()), absl::Seconds(1));
  // A restart takes its time: a client does not give up before it is over.
  EXPECT_GE(std::accumulate(clock_.delays.begin(), clock_.delays.end(), absl::ZeroDuration()),
            absl::Seconds(90));
}

TEST_F(VideoClientTest, ACallDoesNotFailBecauseAnEarlierOneDid) {
  server_.scripts.get_job = [](const auto&, wan::v1::Job*) { return grpc::Status::OK; };
  server_.Stop();
  EXPECT_EQ(videos_.GetJob("jobs/a").status().code(), absl::StatusCode::kUnavailable);
  server_.Restart();
  EXPECT_TRUE(videos_.GetJob("jobs/a").ok());
}

TEST_F(VideoClientTest, EveryUnaryMethodReachesItsOwn) {
  server_.scripts.create_job = [](const auto& request, wan::v1::Job* job) {
    job->set_name(absl::StrCat("created ", request.request().model()));
    return grpc::Status::OK;
  };
  server_.scripts.get_job = [](const auto& request, wan::v1::Job* job) {
    job->set_name(absl::StrCat("got ", request.name()));
    return grpc::Status::OK;
  };
  server_.scripts.cancel_job = [](const auto& request, wan::v1::Job* job) {
    job->set_name(absl::StrCat("cancelled ", request.name()));
    return grpc::Status::OK;
  };
  server_.scripts.list_jobs = [](const auto& request, wan::v1::ListJobsResponse* response) {
    response->set_next_page_token(absl::StrCat("after ", request.page_token()));
    return grpc::Status::OK;
  };
  server_.scripts.get_report = [](const auto& request, wan::v1::JobReport* report) {
    report->set_job(request.job());
    return grpc::Status::OK;
  };
  wan::v1::GenerationRequest request;
  request.set_model("5b");
  EXPECT_EQ(videos_.CreateJob(request)->name(), "created 5b");
  EXPECT_EQ(videos_.GetJob("jobs/a")->name(), "got jobs/a");
  EXPECT_EQ(videos_.CancelJob("jobs/a")->name(), "cancelled jobs/a");
  wan::v1::ListJobsRequest list;
  list.set_page_token("x");
  EXPECT_EQ(videos_.ListJobs(list)->next_page_token(), "after x");
  EXPECT_EQ(videos_.GetReport("jobs/a")->job(), "jobs/a");
}

}  // namespace
}  // namespace wan::client
