// WatchJob and Generate: replay, many watchers, callers that go away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/server/rpc/server_fixture.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using support::ReasonOf;
using support::ViolatedFields;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Events = std::vector<wan::v1::Event>;

// The most that the clock may move while a stream goes on: an event that the client has read may be
// a write of which the server has not heard yet, and after a minute that is a stall.
constexpr absl::Duration kBelowStall = absl::Seconds(59);

// Serialised, so that runs can be compared.
std::vector<std::string> Bytes(const Events& events) {
  std::vector<std::string> bytes;
  for (const wan::v1::Event& event : events) bytes.push_back(event.SerializeAsString());
  return bytes;
}

class WatchJobTest : public ServerTest {
 protected:
  void SetUp() override { StartServing(); }
};

TEST_F(WatchJobTest, SequencesStartAtOneAndHaveNoHoles) {
  const std::string job = MustCreate().name();
  Events events;
  ASSERT_TRUE(Watch(job, 0, &events).ok());
  ASSERT_GT(events.size(), 10u);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(events[i].job(), job);
  }
  EXPECT_TRUE(events.front().has_queued());
  EXPECT_TRUE(events.back().has_completed());
  EXPECT_EQ(MustGet(job).last_sequence(), events.back().sequence());
}

TEST_F(WatchJobTest, ReplayStartsAfterAnySequence) {
  const std::string job = MustCreate().name();
  Events all;
  ASSERT_TRUE(Watch(job, 0, &all).ok());
  for (size_t after = 0; after <= all.size(); ++after) {
    Events rest;
    ASSERT_TRUE(Watch(job, static_cast<int64_t>(after), &rest).ok());
    EXPECT_EQ(Bytes(rest),
              Bytes(Events(all.begin() + static_cast<std::ptrdiff_t>(after), all.end())));
  }
  EXPECT_THAT(ViolatedFields(Watch(job, -1, &all)), ::testing::ElementsAre("after_sequence"));
}

TEST_F(WatchJobTest, AllOfManyWatchersSeeTheSame) {
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  constexpr int kWatchers = 16;
  std::vector<Events> seen(kWatchers);
  std::vector<std::thread> watchers;
  absl::Mutex mutex;
  int following = 0;
  for (Events& events : seen) {
    watchers.emplace_back([&] {
      grpc::ClientContext context;
      wan::v1::WatchJobRequest request;
      request.set_name(job);
      const auto stream = video_->WatchJob(&context, request);
      wan::v1::Event event;
      while (stream->Read(&event)) {
        if (events.empty()) {
          absl::MutexLock lock(&mutex);
          ++following;
        }
        events.push_back(event);
      }
      EXPECT_TRUE(stream->Finish().ok());
    });
  }
  {
    absl::MutexLock lock(&mutex);
    const auto all = [&] { return following == kWatchers; };
    mutex.Await(absl::Condition(&all));
  }
  engine_.Release("Step_1_Inference");
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_TRUE(seen[0].back().has_completed());
  for (const Events& events : seen) EXPECT_EQ(Bytes(events), Bytes(seen[0]));
}

TEST_F(WatchJobTest, AWatcherThatGoesAwayHarmsNothing) {
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  {
    grpc::ClientContext cancelled;
    wan::v1::WatchJobRequest request;
    request.set_name(job);
    const auto stream = video_->WatchJob(&cancelled, request);
    wan::v1::Event event;
    ASSERT_TRUE(stream->Read(&event));
    cancelled.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  {
    // Its whole connection goes.
    const auto own = wan::v1::VideoGeneration::NewStub(Connect());
    grpc::ClientContext context;
    wan::v1::WatchJobRequest request;
    request.set_name(job);
    const auto stream = own->WatchJob(&context, request);
    wan::v1::Event event;
    ASSERT_TRUE(stream->Read(&event));
  }
  engine_.Release("Step_1_Inference");
  EXPECT_EQ(AwaitEnd(job).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(WatchJobTest, AWatcherThatDoesNotReadHoldsBackNobody) {
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_steps(500);
  engine_.Hold("Step_0_Inference");
  const std::string job = MustCreate(request).name();
  engine_.AwaitHeld("Step_0_Inference");
  grpc::ClientContext context;
  wan::v1::WatchJobRequest watch;
  watch.set_name(job);
  const auto slow = video_->WatchJob(&context, watch);
  engine_.Release("Step_0_Inference");
  const wan::v1::Job ended = AwaitEnd(job);
  EXPECT_EQ(ended.state(), wan::v1::JOB_STATE_COMPLETED);
  int64_t count = 0;
  wan::v1::Event event;
  while (slow->Read(&event)) EXPECT_EQ(event.sequence(), ++count);
  EXPECT_TRUE(slow->Finish().ok());
  EXPECT_EQ(count, ended.last_sequence());
}

TEST_F(WatchJobTest, PreviewsAreShownLiveAndNotReplayed) {
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_preview_interval(1);
  engine_.Hold("T5_Encoding");
  engine_.Hold("VAE_Decoding");
  const std::string job = MustCreate(request).name();
  engine_.AwaitHeld("T5_Encoding");
  grpc::ClientContext context;
  wan::v1::WatchJobRequest watch;
  watch.set_name(job);
  const auto stream = video_->WatchJob(&context, watch);
  wan::v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  engine_.Release("T5_Encoding");
  // The last preview is seen before the job goes on.
  while (stream->Read(&event) && !(event.has_preview() && event.preview().step() == 3)) {
  }
  EXPECT_EQ(event.preview().jpeg(), "JPEG of step 3");
  EXPECT_EQ(event.sequence(), 0);
  engine_.Release("VAE_Decoding");
  while (stream->Read(&event)) {
  }
  EXPECT_TRUE(event.has_completed());
  Events replayed;
  ASSERT_TRUE(Watch(job, 0, &replayed).ok());
  ASSERT_FALSE(replayed.empty());
  EXPECT_TRUE(replayed.back().has_completed());
  for (const wan::v1::Event& old : replayed) EXPECT_FALSE(old.has_preview());
}

class GenerateTest : public ServerTest {
 protected:
  void SetUp() override { StartServing(); }

  std::unique_ptr<grpc::ClientReader<wan::v1::Event>> Generate(
      grpc::ClientContext& context, const wan::v1::GenerationRequest& request) {
    wan::v1::GenerateRequest generate;
    *generate.mutable_request() = request;
    return video_->Generate(&context, generate);
  }

  // Reads until a stage begins.
  static std::string ReadUntilStage(grpc::ClientReader<wan::v1::Event>& stream,
                                    const std::string& stage) {
    wan::v1::Event event;
    while (stream.Read(&event)) {
      if (event.stage_started().stage() == stage) return event.job();
    }
    ADD_FAILURE() << "no " << stage;
    return "";
  }

  std::string CancelReason(const std::string& job) {
    Events events;
    EXPECT_TRUE(Watch(job, 0, &events).ok());
    EXPECT_TRUE(!events.empty() && events.back().has_cancelled());
    return events.empty() ? "" : events.back().cancelled().reason();
  }
};

TEST_F(GenerateTest, ItStreamsTheJobToItsEnd) {
  grpc::ClientContext context;
  const auto stream = Generate(context, SmallRequest());
  Events events;
  wan::v1::Event event;
  while (stream->Read(&event)) events.push_back(event);
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().sequence(), 1);
  EXPECT_TRUE(events.back().has_completed());
  EXPECT_THAT(events.back().completed().artifacts(), SizeIs(1));
}

TEST_F(GenerateTest, ABadRequestIsRefusedWithItsViolations) {
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_width(1);
  request.set_steps(0);
  grpc::ClientContext context;
  const auto stream = Generate(context, request);
  wan::v1::Event event;
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_THAT(ViolatedFields(stream->Finish()), ::testing::UnorderedElementsAre("width", "steps"));
}

TEST_F(GenerateTest, ACallerThatCancelsStopsTheWork) {
  engine_.Hold("Step_1_Inference");
  grpc::ClientContext context;
  const auto stream = Generate(context, SmallRequest());
  const std::string job = ReadUntilStage(*stream, "Step_1_Inference");
  engine_.AwaitHeld("Step_1_Inference");
  context.TryCancel();
  // The fake leaves the held stage only because it was asked to stop.
  EXPECT_EQ(CancelReason(job), "caller went away");
  EXPECT_EQ(MustGet(job).state(), wan::v1::JOB_STATE_CANCELLED);
}

TEST_F(GenerateTest, ACallerWhoseConnectionBreaksStopsTheWork) {
  engine_.Hold("Step_1_Inference");
  std::string job;
  {
    const auto own = wan::v1::VideoGeneration::NewStub(Connect());
    grpc::ClientContext context;
    wan::v1::GenerateRequest generate;
    *generate.mutable_request() = SmallRequest();
    const auto stream = own->Generate(&context, generate);
    job = ReadUntilStage(*stream, "Step_1_Inference");
  }
  EXPECT_EQ(CancelReason(job), "caller went away");
}

TEST_F(GenerateTest, ACallersDeadlineStopsTheWork) {
  engine_.Hold("Step_1_Inference");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  const auto stream = Generate(context, SmallRequest());
  wan::v1::Event event;
  std::string job;
  while (stream->Read(&event)) job = event.job();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_NE(job, "") << "the job was not even accepted in time";
  EXPECT_EQ(CancelReason(job), "deadline exceeded");
}

TEST_F(GenerateTest, ACallerThatLeavesTheQueueTakesItsJobAlong) {
  engine_.Hold("T5_Encoding");
  MustCreate();
  engine_.AwaitHeld("T5_Encoding");
  grpc::ClientContext context;
  const auto stream = Generate(context, SmallRequest());
  wan::v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  ASSERT_TRUE(event.has_queued());
  context.TryCancel();
  EXPECT_EQ(CancelReason(event.job()), "caller went away");
  EXPECT_EQ(engine_.Generated().size(), 1u);
}

TEST_F(GenerateTest, AnotherCallsJobIsOnlyWatched) {
  engine_.Hold("Step_1_Inference");
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_request_id("shared");
  const std::string job = MustCreate(request).name();
  engine_.AwaitHeld("Step_1_Inference");
  {
    grpc::ClientContext context;
    const auto stream = Generate(context, request);
    EXPECT_EQ(ReadUntilStage(*stream, "Step_1_Inference"), job);
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  engine_.Release("Step_1_Inference");
  EXPECT_EQ(AwaitEnd(job).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(GenerateTest, ACutCallIsTakenUpAgainWithinItsGraceTime) {
  engine_.Hold("Step_1_Inference");
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_request_id("mine");
  std::string job;
  {
    const auto own = wan::v1::VideoGeneration::NewStub(Connect());
    grpc::ClientContext context;
    wan::v1::GenerateRequest generate;
    *generate.mutable_request() = request;
    const auto stream = own->Generate(&context, generate);
    job = ReadUntilStage(*stream, "Step_1_Inference");
  }
  clock_.Advance(absl::Seconds(29));
  grpc::ClientContext context;
  const auto stream = Generate(context, request);
  EXPECT_EQ(ReadUntilStage(*stream, "Step_1_Inference"), job);
  clock_.Advance(kBelowStall);  // the grace time has no meaning any more
  engine_.Release("Step_1_Inference");
  wan::v1::Event event;
  while (stream->Read(&event)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(event.has_completed());
}

TEST_F(GenerateTest, ACutCallThatNobodyTakesUpEndsAfterTheGraceTime) {
  engine_.Hold("Step_1_Inference");
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_request_id("mine");
  grpc::ClientContext context;
  const auto stream = Generate(context, request);
  const std::string job = ReadUntilStage(*stream, "Step_1_Inference");
  engine_.AwaitHeld("Step_1_Inference");
  // Two hold it: the first one's end changes nothing.
  grpc::ClientContext second_context;
  const auto second = Generate(second_context, request);
  EXPECT_EQ(ReadUntilStage(*second, "Step_1_Inference"), job);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  second_context.TryCancel();
  EXPECT_EQ(second->Finish().error_code(), grpc::StatusCode::CANCELLED);
  Events events;
  std::thread watcher([&] { EXPECT_TRUE(Watch(job, 0, &events).ok()); });
  // The server hears of the cancellations in its own time, and the grace time begins then.
  while (MustGet(job).state() == wan::v1::JOB_STATE_RUNNING) {
    clock_.Advance(absl::Seconds(10));
    std::this_thread::yield();
  }
  watcher.join();
  EXPECT_EQ(CancelReason(job), "caller went away");
}

TEST_F(GenerateTest, WithoutAGraceTimeACutCallEndsItsJob) {
  StopServer();
  ServerConfig config = DefaultConfig();
  config.caller_grace = 0;
  StartServing(config);
  engine_.Hold("Step_1_Inference");
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_request_id("mine");
  grpc::ClientContext context;
  const auto stream = Generate(context, request);
  const std::string job = ReadUntilStage(*stream, "Step_1_Inference");
  context.TryCancel();
  EXPECT_EQ(CancelReason(job), "caller went away");
}

TEST_F(GenerateTest, AStreamThatCarriesNothingGetsHeartbeats) {
  engine_.Hold("Step_1_Inference");
  grpc::ClientContext context;
  const auto stream = Generate(context, SmallRequest());
  const std::string job = ReadUntilStage(*stream, "Step_1_Inference");
  for (int beat = 0; beat < 3; ++beat) {
    clock_.Advance(absl::Seconds(15));
    wan::v1::Event event;
    ASSERT_TRUE(stream->Read(&event));
    EXPECT_TRUE(event.has_heartbeat());
    EXPECT_EQ(event.sequence(), 0);
    EXPECT_TRUE(event.has_time());
  }
  engine_.Release("Step_1_Inference");
  wan::v1::Event event;
  while (stream->Read(&event)) {
  }
  EXPECT_TRUE(event.has_completed());
  // They are not stored.
  Events events;
  ASSERT_TRUE(Watch(job, 0, &events).ok());
  for (const wan::v1::Event& stored : events) EXPECT_FALSE(stored.has_heartbeat());
}

TEST_F(WatchJobTest, HeartbeatsComeWithTheirIntervalOrNotAtAll) {
  StopServer();
  ServerConfig config = DefaultConfig();
  config.heartbeat_interval = 2;
  StartServing(config);
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  grpc::ClientContext context;
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  const auto stream = video_->WatchJob(&context, request);
  wan::v1::Event event;
  while (stream->Read(&event) && event.stage_started().stage() != "Step_1_Inference") {
  }
  clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_TRUE(event.has_heartbeat());
  engine_.Release("Step_1_Inference");
  while (stream->Read(&event)) {
  }

  StopServer();
  config.heartbeat_interval = 0;
  StartServing(config);
  engine_.Hold("Step_1_Inference");
  request.set_name(MustCreate().name());
  engine_.AwaitHeld("Step_1_Inference");
  grpc::ClientContext second_context;
  const auto second = video_->WatchJob(&second_context, request);
  while (second->Read(&event) && event.stage_started().stage() != "Step_1_Inference") {
  }
  clock_.Advance(kBelowStall);
  engine_.Release("Step_1_Inference");
  int beats = 0;
  while (second->Read(&event)) beats += event.has_heartbeat() ? 1 : 0;
  EXPECT_EQ(beats, 0);
}

// Each call ends where it likes: before its job was made, in the queue, while it runs.
TEST_F(GenerateTest, ManyCallersComeAndGo) {
  constexpr int kCallers = 24;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([this, caller] {
      grpc::ClientContext context;
      const auto stream = Generate(context, SmallRequest());
      wan::v1::Event event;
      for (int read = 0; read < caller % 6 && stream->Read(&event); ++read) {
      }
      if (caller % 2 == 0) context.TryCancel();
      while (stream->Read(&event)) {
      }
      const grpc::Status status = stream->Finish();
      EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::CANCELLED)
          << status.error_message();
    });
  }
  for (std::thread& caller : callers) caller.join();
  // Whoever stayed got a video, and nothing is left behind.
  grpc::ClientContext context;
  wan::v1::ListJobsRequest list;
  list.set_page_size(1000);
  wan::v1::ListJobsResponse listed;
  ASSERT_TRUE(video_->ListJobs(&context, list, &listed).ok());
  int completed = 0;
  for (const wan::v1::Job& job : listed.jobs()) {
    completed += AwaitEnd(job.name()).state() == wan::v1::JOB_STATE_COMPLETED ? 1 : 0;
  }
  EXPECT_GE(completed, kCallers / 2);
}

}  // namespace
}  // namespace wan::server
