// generate and watch.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using fakes::Cancelled;
using fakes::Completed;
using fakes::Failed;
using fakes::Preview;
using fakes::Queued;
using fakes::ReadFile;
using fakes::Step;
using fakes::Stream;
using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using wan::v1::Event;

TEST_F(WanctlTest, GenerateWritesEachOutput) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  const auto latents = Serve(wan::v1::OUTPUT_KIND_LATENTS, "latents.safetensors", "latents");
  Script({Queued(1), Step(2, 1, 1, 0.5), CompletedWith(3, {latents, mp4})});
  fakes::WriteFile(folder_ / "cat.png", "png bytes");

  EXPECT_EQ(Generate({(folder_ / "b.safetensors").string(), "--image",
                      (folder_ / "cat.png").string(), "--deadline", "90", "--seed", "7",
                      "--initial-latents", (folder_ / "cat.png").string(), "--latents", "maker"}),
            0);
  EXPECT_EQ(ReadFile(folder_ / "a.mp4"), "mp4 bytes");
  EXPECT_EQ(ReadFile(folder_ / "b.safetensors"), "latents");
  EXPECT_EQ(out_,
            (folder_ / "a.mp4").string() + "\n" + (folder_ / "b.safetensors").string() + "\n");
  EXPECT_EQ(err_,
            "jobs/a1 queued, next to run\n"
            "Step 1/1  0.50 s\n"
            "jobs/a1 completed in 12.50 s\n"
            "wanctl: jobs/a1 has seed 7\n");

  ASSERT_EQ(generate_requests_.All().size(), 1u);
  const wan::v1::GenerationRequest request = generate_requests_.All()[0].request();
  EXPECT_EQ(request.image(), "png bytes");
  EXPECT_EQ(request.initial_latents().data(), "png bytes");
  EXPECT_EQ(request.latents().job(), "jobs/maker");
  EXPECT_EQ(request.seed(), 7);
  EXPECT_EQ(request.deadline().seconds(), 1767225690);
  EXPECT_EQ(request.deadline().nanos(), 500'000'000);
}

TEST_F(WanctlTest, GenerateOnATerminalDrawsABar) {
  err_columns_ = 80;
  Script({Queued(1), Step(2, 1, 4, 0.5, 9), Cancelled(3, "CancelJob")});
  EXPECT_EQ(Generate(), 5);
  EXPECT_THAT(err_,
              HasSubstr("\r\x1b[K[=======>                      ] 1/4  0.50 s/step  0:09 left"));
  // The bar gives way to what is said.
  EXPECT_THAT(err_, EndsWith("\r\x1b[Kwanctl: jobs/a1 was cancelled: CancelJob\n"));
}

TEST_F(WanctlTest, JsonLinesAreTheServersEvents) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  const std::vector<Event> events = {Queued(1, 2), Step(2, 1, 1, 0.5, 1),
                                     Preview(1, "\xff\xd8jpeg"), CompletedWith(3, {mp4})};
  Script(events);
  EXPECT_EQ(Generate({"--json", "--preview-interval", "1"}), 0);
  const std::vector<Event> printed = FromLines<Event>(out_);
  ASSERT_EQ(printed.size(), events.size()) << out_;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_TRUE(MessageDifferencer::Equals(printed[i], events[i])) << out_;
  }
  EXPECT_EQ(err_, "");
  EXPECT_EQ(ReadFile(folder_ / "a.mp4"), "mp4 bytes");
}

TEST_F(WanctlTest, ARejectedRequestShowsEveryViolation) {
  google::rpc::BadRequest details;
  for (const char* field : {"width", "num_frames"}) {
    auto* violation = details.add_field_violations();
    violation->set_field(field);
    violation->set_description("is wrong");
  }
  Script({},
         fakes::ErrorWith(grpc::StatusCode::INVALID_ARGUMENT, "2 fields are wrong", {&details}));
  EXPECT_EQ(Generate(), 3);
  EXPECT_EQ(out_, "");
  const std::string said =
      "wanctl: INVALID_ARGUMENT: 2 fields are wrong\n"
      "  width: is wrong\n"
      "  num_frames: is wrong\n";
  EXPECT_EQ(err_, said);

  // For programs the same follows as one line.
  EXPECT_EQ(Generate({"--json"}), 3);
  EXPECT_EQ(out_, "");
  ASSERT_EQ(err_.substr(0, said.size()), said);
  const auto status = FromLines<google::rpc::Status>(err_.substr(said.size()));
  ASSERT_EQ(status.size(), 1u);
  EXPECT_EQ(status[0].code(), 3);
  google::rpc::BadRequest back;
  ASSERT_TRUE(status[0].details(0).UnpackTo(&back));
  EXPECT_TRUE(MessageDifferencer::Equals(back, details));
}

TEST_F(WanctlTest, EveryOutcomeHasItsExitCode) {
  const auto error = [](grpc::StatusCode code) { return grpc::Status(code, "because"); };
  const struct {
    std::vector<Event> events;
    grpc::Status end;
    int code;
    std::string says;
  } table[] = {
      {{}, error(grpc::StatusCode::NOT_FOUND), 3, "wanctl: NOT_FOUND: because\n"},
      {{}, error(grpc::StatusCode::ALREADY_EXISTS), 3, "ALREADY_EXISTS"},
      {{}, error(grpc::StatusCode::FAILED_PRECONDITION), 3, "FAILED_PRECONDITION"},
      {{}, error(grpc::StatusCode::RESOURCE_EXHAUSTED), 3, "RESOURCE_EXHAUSTED"},
      {{}, error(grpc::StatusCode::INTERNAL), 4, "INTERNAL"},
      {{}, error(grpc::StatusCode::DEADLINE_EXCEEDED), 5, "DEADLINE_EXCEEDED"},
      {{}, error(grpc::StatusCode::UNAVAILABLE), 6, "wanctl: cannot reach 127.0.0.1:"},
      {{Queued(1)},
       error(grpc::StatusCode::UNAVAILABLE),
       6,
       "wanctl: 'wanctl watch jobs/a1' shows how it goes on\n"},
      {{Queued(1)}, error(grpc::StatusCode::RESOURCE_EXHAUSTED), 4, "RESOURCE_EXHAUSTED"},
      {{Queued(1)}, grpc::Status::OK, 4, "the stream ended before the job did"},
      {{Failed(1, 13, "out of memory")},
       grpc::Status::OK,
       4,
       "wanctl: jobs/a1 failed: INTERNAL: out of memory\n"},
      {{Failed(1, 8, "out of memory")}, error(grpc::StatusCode::RESOURCE_EXHAUSTED), 4, "failed"},
      {{Cancelled(1, "deadline exceeded")},
       error(grpc::StatusCode::CANCELLED),
       5,
       "wanctl: jobs/a1 was cancelled: deadline exceeded\n"},
      {{Completed(1)}, grpc::Status::OK, 4, "jobs/a1 has no .mp4"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.says);
    Script(row.events, row.end);
    EXPECT_EQ(Generate(), row.code) << err_;
    EXPECT_THAT(err_, HasSubstr(row.says));
    EXPECT_EQ(out_, "");
  }
}

// The model is being loaded, ask again after `delay`.
grpc::Status Loading(absl::Duration delay) {
  google::rpc::ErrorInfo info;
  info.set_reason("MODEL_LOADING");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  return fakes::ErrorWith(grpc::StatusCode::UNAVAILABLE, "model '5b' is being loaded",
                          {&info, &retry});
}

TEST_F(WanctlTest, GenerateWaitsForAModelThatIsBeingLoaded) {
  const auto mp4 = Serve(wan::v1::OUTPUT_KIND_MP4, "video.mp4", "mp4 bytes");
  Script({}, Loading(absl::Seconds(3)));
  clock_.on_wait = [&] {
    if (clock_.delays.size() == 2) Script({Queued(1), CompletedWith(2, {mp4})});
  };
  EXPECT_EQ(Generate(), 0);
  EXPECT_THAT(clock_.delays, ElementsAre(absl::Seconds(3), absl::Seconds(3)));
  EXPECT_THAT(err_,
              StartsWith("wanctl: the server is loading the model; waiting for it\njobs/a1 "));
  const auto requests = generate_requests_.All();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_TRUE(MessageDifferencer::Equals(requests[0], requests[2]));
}

TEST_F(WanctlTest, AModelThatCannotBeLoadedEndsTheWait) {
  google::rpc::ErrorInfo info;
  info.set_reason("MODEL_NOT_READY");
  Script({}, Loading(absl::Seconds(3)));
  clock_.on_wait = [&] {
    Script({}, fakes::ErrorWith(grpc::StatusCode::FAILED_PRECONDITION, "no such folder", {&info}));
  };
  EXPECT_EQ(Generate(), 3);
  EXPECT_THAT(err_, HasSubstr("\nwanctl: FAILED_PRECONDITION (MODEL_NOT_READY): no such"));
}

TEST_F(WanctlTest, TheWaitForAModelEndsWithTheCommand) {
  Script({}, Loading(absl::Hours(2)));
  now_ = absl::Now();
  clock_.on_wait = [this] { stop_.request_stop(); };
  EXPECT_EQ(Generate({"--timeout", "600"}), 5);
  EXPECT_THAT(clock_.delays, ElementsAre(absl::Minutes(10)));
  EXPECT_THAT(err_, EndsWith("wanctl: interrupted\n"));
}

TEST_F(WanctlTest, AServerThatStopsIsNotWaitedFor) {
  google::rpc::ErrorInfo info;
  info.set_reason("SERVER_STOPPING");
  Script({}, fakes::ErrorWith(grpc::StatusCode::UNAVAILABLE, "stopping", {&info}));
  EXPECT_EQ(Generate(), 3);
  EXPECT_THAT(clock_.delays, IsEmpty());
}

TEST_F(WanctlTest, PreviewsAreWritten) {
  Event two = Preview(10, "jpeg ten");
  two.mutable_preview()->add_later_jpegs("its last");
  Event three = Preview(15, "jpeg fifteen");
  three.mutable_preview()->add_later_jpegs("its middle");
  three.mutable_preview()->add_later_jpegs("its last");
  Script({Preview(5, "jpeg five"), two, three, Cancelled(1, "x")});
  EXPECT_EQ(Generate({"--preview-interval", "5", "--preview-dir", (folder_ / "p" / "q").string()}),
            5);
  for (const auto& [name, text] :
       std::map<std::string, std::string>{{"step-0005.jpg", "jpeg five"},
                                          {"step-0010.jpg", "jpeg ten"},
                                          {"step-0010-last.jpg", "its last"},
                                          {"step-0015.jpg", "jpeg fifteen"},
                                          {"step-0015-middle.jpg", "its middle"},
                                          {"step-0015-last.jpg", "its last"}}) {
    EXPECT_EQ(ReadFile(folder_ / "p" / "q" / name), text) << name;
  }
}

TEST_F(WanctlTest, CtrlCCancelsGenerate) {
  Stream<Event> stream{.messages = {Queued(1)}, .hold = true};
  stream.on_hold = [this] { stop_.request_stop(); };
  Script(stream);
  EXPECT_EQ(Generate(), 5);
  EXPECT_THAT(err_, HasSubstr("wanctl: interrupted\n"));
}

TEST_F(WanctlTest, ATimeoutEndsTheCommand) {
  now_ = absl::Now() - absl::Hours(1);
  EXPECT_EQ(Run({"--timeout", "1800", "list"}), 6);
  EXPECT_THAT(err_, HasSubstr("no connection within the given time"));

  now_ = absl::Now() - absl::Hours(1);
  Script({.messages = {Queued(1)}, .hold = true});
  EXPECT_EQ(Generate({"--timeout", "3601"}), 5);
  EXPECT_THAT(err_, HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(WanctlTest, WatchEndsAsTheJobDoes) {
  fakes::Requests<wan::v1::WatchJobRequest> requests;
  const struct {
    Event end;
    int code;
  } table[] = {{Completed(9), 0}, {Failed(9, 13, "x"), 4}, {Cancelled(9, "x"), 5}};
  for (const auto& row : table) {
    server_.scripts.watch_job = [&](const wan::v1::WatchJobRequest& request) {
      requests.Add(request);
      return Stream<Event>{{Step(8, 1, 2, 0.5), row.end}};
    };
    EXPECT_EQ(Run({"watch", "a1", "--after", "7"}), row.code);
    EXPECT_THAT(out_, HasSubstr("Step 1/2  0.50 s\n"));
  }
  EXPECT_EQ(requests.All()[0].name(), "jobs/a1");
  EXPECT_EQ(requests.All()[0].after_sequence(), 7);
}

TEST_F(WanctlTest, WatchTellsOfABrokenConnectionAndGoesOn) {
  server_.scripts.watch_job = [&](const wan::v1::WatchJobRequest& request) {
    if (request.after_sequence() == 2) return Stream<Event>{{Completed(3)}};
    return Stream<Event>{{Queued(1), Step(2, 1, 2, 0.5)},
                         grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  EXPECT_EQ(Run({"watch", "a1", "--json"}), 0);
  std::vector<int64_t> sequences;
  for (const Event& event : FromLines<Event>(out_)) sequences.push_back(event.sequence());
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3));
  EXPECT_EQ(err_, "wanctl: no connection to " + server_.address() + ", connecting again\n");

  // A bar of stdout may stand in the same line of the terminal.
  err_columns_ = 80;
  EXPECT_EQ(Run({"watch", "a1"}), 0);
  EXPECT_THAT(err_, StartsWith("\r\x1b[Kwanctl: no connection"));
}

// As nginx ends a stream that was silent for too long.
TEST_F(WanctlTest, WatchGoesOnAfterAProxyHasCutTheStream) {
  server_.scripts.watch_job = [&](const wan::v1::WatchJobRequest& request) {
    if (request.after_sequence() == 1) return Stream<Event>{{Completed(2)}};
    return Stream<Event>{
        {Queued(1)},
        grpc::Status(grpc::StatusCode::INTERNAL, "Received RST_STREAM with error code 2")};
  };
  EXPECT_EQ(Run({"watch", "a1"}), 0);
  EXPECT_THAT(out_, HasSubstr("completed"));
}

TEST_F(WanctlTest, CtrlCLeavesAWatchedJobAlone) {
  server_.scripts.watch_job = [&](const auto&) {
    return Stream<Event>{{Queued(1)}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  clock_.on_wait = [this] { stop_.request_stop(); };
  EXPECT_EQ(Run({"watch", "a1"}), 5);
  EXPECT_THAT(err_, EndsWith("wanctl: interrupted\nwanctl: jobs/a1 goes on by itself\n"));
}

}  // namespace
}  // namespace wan::client
