// What must survive: cancels, deadlines, retries, a full queue, kill -9 and restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "google/protobuf/util/time_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using google::protobuf::util::TimeUtil;
using testing::HasSubstr;
using wan::v1::Event;

// Long enough that it never ends by itself while a test looks at it.
wan::v1::GenerationRequest LongRequest() {
  wan::v1::GenerationRequest request = TinyRequest(/*steps=*/1000);
  request.set_width(512);
  request.set_height(512);
  request.set_num_frames(33);
  return request;
}

// A tiny video with so many steps takes a second or more: it ends, but not before a test that saw
// its first step has done something to it.
constexpr int kStepsOfASecond = 400;

bool IsFirstStep(const Event& event) { return event.has_step_progress(); }

// True after the start of a stage.
std::function<bool(const Event&)> Reaches(const std::string& stage) {
  return [stage](const Event& event) {
    return event.has_stage_started() && event.stage_started().stage() == stage;
  };
}

wan::v1::Job Cancel(TestServer& server, const std::string& name) {
  grpc::ClientContext context;
  wan::v1::CancelJobRequest request;
  request.set_name(name);
  wan::v1::Job job;
  EXPECT_TRUE(server.videos().CancelJob(&context, request, &job).ok());
  return job;
}

// Steps that were finished in a log.
int StepsIn(const std::vector<Event>& events) {
  int steps = 0;
  for (const Event& event : events) steps += event.has_step_progress() ? 1 : 0;
  return steps;
}

TEST(LifecycleTest, CancelStopsTheWorkWithinOneStep) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const std::string name = server.Submit(LongRequest()).name();
  const int64_t seen = server.Watch(name, 0, IsFirstStep).back().sequence();
  Cancel(server, name);
  const std::vector<Event> rest = server.Watch(name, seen);
  ASSERT_TRUE(rest.back().has_cancelled());
  EXPECT_LT(StepsIn(rest), 1000);
  EXPECT_EQ(server.Get(name).state(), wan::v1::JOB_STATE_CANCELLED);
  // The thread is free again.
  EXPECT_EQ(server.Await(server.Submit(TinyRequest()).name()).state(),
            wan::v1::JOB_STATE_COMPLETED);
}

TEST(LifecycleTest, AQueuedJobIsCancelledAtOnce) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const std::string running = server.Submit(LongRequest()).name();
  server.Watch(running, 0, IsFirstStep);
  const std::string queued = server.Submit(TinyRequest()).name();
  EXPECT_EQ(server.Get(queued).queue_position(), 0);
  EXPECT_EQ(Cancel(server, queued).state(), wan::v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(server.Get(running).state(), wan::v1::JOB_STATE_RUNNING);
  Cancel(server, running);
}

TEST(LifecycleTest, ADeadlineEndsTheJob) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  wan::v1::GenerationRequest request = LongRequest();
  *request.mutable_deadline() = TimeUtil::GetCurrentTime() + TimeUtil::SecondsToDuration(2);
  const wan::v1::Job job = server.Await(server.Submit(request).name());
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_CANCELLED);
  EXPECT_THAT(job.error().message(), HasSubstr("deadline"));
}

TEST(LifecycleTest, GenerateEndsWithItsCaller) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  std::string name;
  {
    grpc::ClientContext context;
    wan::v1::GenerateRequest request;
    *request.mutable_request() = LongRequest();
    const auto reader = server.videos().Generate(&context, request);
    for (Event event; reader->Read(&event) && !event.has_step_progress();) name = event.job();
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_EQ(server.Await(name).state(), wan::v1::JOB_STATE_CANCELLED);
}

TEST(LifecycleTest, GenerateEndsWithItsCallersDeadline) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  wan::v1::GenerateRequest request;
  *request.mutable_request() = LongRequest();
  const auto reader = server.videos().Generate(&context, request);
  std::string name;
  for (Event event; reader->Read(&event);) name = event.job();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server.Await(name).state(), wan::v1::JOB_STATE_CANCELLED);
}

TEST(LifecycleTest, AWatcherThatLeavesHarmsNothing) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const std::string name = server.Submit(TinyRequest(/*steps=*/20)).name();
  for (int i = 0; i < 5; ++i) server.Watch(name, 0, [](const Event&) { return true; });
  EXPECT_EQ(server.Await(name).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST(LifecycleTest, ARetryWithTheSameRequestIdIsTheSameJobAlsoAfterARestart) {
  const TemporaryFolder folder;
  wan::v1::GenerationRequest request = TinyRequest();
  request.set_request_id("invoice-17");
  std::string name;
  {
    TestServer server({.data_dir = folder.path()});
    std::vector<std::string> names(8);
    std::vector<std::thread> threads;
    for (std::string& slot : names) {
      threads.emplace_back([&] { slot = server.Submit(request).name(); });
    }
    for (std::thread& thread : threads) thread.join();
    name = names.front();
    EXPECT_THAT(names, testing::Each(name));
    server.Await(name);
    server.Kill();
  }
  TestServer server({.data_dir = folder.path()});
  EXPECT_EQ(server.Submit(request).name(), name);
  EXPECT_EQ(server.Get(name).attempt(), 1);
  request.set_prompt("Another text.");
  grpc::ClientContext context;
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = request;
  wan::v1::Job job;
  EXPECT_EQ(server.videos().CreateJob(&context, create, &job).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
}

TEST(LifecycleTest, AFullQueueSaysWhenToComeBack) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path(), .flags = {"--queue-capacity", "2"}});
  const std::string running = server.Submit(LongRequest()).name();
  server.Watch(running, 0, IsFirstStep);
  server.Submit(TinyRequest());
  server.Submit(TinyRequest());
  grpc::ClientContext context;
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = TinyRequest();
  wan::v1::Job job;
  const grpc::Status status = server.videos().CreateJob(&context, create, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status rich;
  ASSERT_TRUE(rich.ParseFromString(status.error_details()));
  google::rpc::RetryInfo retry;
  bool has_retry = false;
  for (const auto& detail : rich.details()) has_retry |= detail.UnpackTo(&retry);
  EXPECT_TRUE(has_retry);
  EXPECT_GT(TimeUtil::DurationToMilliseconds(retry.retry_delay()), 0);
  Cancel(server, running);
}

TEST(LifecycleTest, HigherPriorityRunsFirst) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const std::string running = server.Submit(LongRequest()).name();
  server.Watch(running, 0, IsFirstStep);
  const std::string first = server.Submit(TinyRequest()).name();
  wan::v1::GenerationRequest urgent = TinyRequest();
  urgent.set_priority(10);
  const std::string second = server.Submit(urgent).name();
  EXPECT_EQ(server.Get(second).queue_position(), 0);
  EXPECT_EQ(server.Get(first).queue_position(), 1);
  Cancel(server, running);
  const wan::v1::Job later = server.Await(first);
  const wan::v1::Job sooner = server.Await(second);
  EXPECT_LT(TimeUtil::TimestampToNanoseconds(sooner.start_time()),
            TimeUtil::TimestampToNanoseconds(later.start_time()));
}

// SIGTERM as configured.
TEST(LifecycleTest, SigtermFinishesTheRunningJob) {
  const TemporaryFolder folder;
  std::string running;
  std::string queued;
  {
    TestServer server({.data_dir = folder.path(), .flags = {"--shutdown-mode", "finish"}});
    running = server.Submit(TinyRequest(kStepsOfASecond)).name();
    server.Watch(running, 0, IsFirstStep);
    queued = server.Submit(TinyRequest()).name();
    EXPECT_EQ(server.Terminate(), 0) << server.Log();
  }
  TestServer server({.data_dir = folder.path()});
  EXPECT_EQ(server.Get(running).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(server.Get(running).attempt(), 1);
  EXPECT_EQ(server.Await(queued).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST(LifecycleTest, SigtermRequeuesTheRunningJob) {
  const TemporaryFolder folder;
  std::string running;
  {
    TestServer server({.data_dir = folder.path(), .flags = {"--shutdown-mode", "requeue"}});
    running = server.Submit(TinyRequest(kStepsOfASecond)).name();
    server.Watch(running, 0, IsFirstStep);
    EXPECT_EQ(server.Terminate(), 0) << server.Log();
  }
  TestServer server({.data_dir = folder.path()});
  const wan::v1::Job job = server.Await(running);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(job.attempt(), 2);
}

TEST(LifecycleTest, TwoServersDoNotShareADataFolder) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const ProcessResult second = RunProcess({std::string(WAN_BINARY_DIR) + "/wanserve", "--listen",
                                           "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                                           "--http-listen", "none", "--data-dir", folder.path()});
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr(folder.path()));
}

TEST(LifecycleTest, AJobThatIsKilledTooOftenFailsAndTheNextOneRuns) {
  const TemporaryFolder folder;
  const ServerOptions options = {.data_dir = folder.path(), .flags = {"--max-attempts", "2"}};
  std::string poison;
  std::string next;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    TestServer server(options);
    if (attempt == 1) {
      poison = server.Submit(LongRequest()).name();
      next = server.Submit(TinyRequest()).name();
    }
    server.Watch(poison, 0, [&](const Event& event) {
      return event.attempt() == attempt && Reaches("Step_1_Inference")(event);
    });
    server.Kill();
  }
  TestServer server(options);
  const wan::v1::Job job = server.Get(poison);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.lost_attempts_size(), 2);
  EXPECT_THAT(job.error().message(), HasSubstr("attempt 2 last reported at 20"));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(job.error().details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "ATTEMPTS_EXHAUSTED");
  EXPECT_EQ(server.Await(next).state(), wan::v1::JOB_STATE_COMPLETED);
}

// Full to the server alone: none of its files may grow.
TEST(LifecycleTest, AFullDiskRefusesNewJobsServesOldOnesAndPasses) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const wan::v1::Job done = server.Await(server.Submit(TinyRequest()).name());
  ASSERT_EQ(done.state(), wan::v1::JOB_STATE_COMPLETED);
  const std::string running = server.Submit(TinyRequest(kStepsOfASecond)).name();
  server.Watch(running, 0, IsFirstStep);
  const std::string queued = server.Submit(TinyRequest()).name();
  rlimit before = {};
  ASSERT_EQ(prlimit(server.process().pid(), RLIMIT_FSIZE, nullptr, &before), 0);
  const rlimit full = {0, before.rlim_max};
  ASSERT_EQ(prlimit(server.process().pid(), RLIMIT_FSIZE, &full, nullptr), 0);
  grpc::ClientContext context;
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = TinyRequest();
  wan::v1::Job job;
  const grpc::Status refused = server.videos().CreateJob(&context, create, &job);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr(folder.path()));
  EXPECT_EQ(server.Download(done.artifacts(0).name()).size(), done.artifacts(0).size_bytes());
  EXPECT_THAT(server.Metrics(), HasSubstr("wan_storage_writable 0"));
  // Callers are told of the end of the attempt once it is stored; the metrics know it before.
  while (server.Metrics().find("wan_active_jobs{state=\"running\"} 0") == std::string::npos) {
  }
  EXPECT_EQ(server.Get(running).state(), wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(server.Get(queued).state(), wan::v1::JOB_STATE_QUEUED);
  ASSERT_EQ(prlimit(server.process().pid(), RLIMIT_FSIZE, &before, nullptr), 0);
  server.Watch(running, 0, [](const Event& event) { return event.has_requeued(); });
  for (const std::string& name : {running, queued}) {
    EXPECT_EQ(server.Await(name).state(), wan::v1::JOB_STATE_COMPLETED);
  }
  server.AwaitServing();
}

// kill -9 at each stage; the 20 kills of the plan are the rows below.
class KillTest : public testing::TestWithParam<std::string> {};

TEST_P(KillTest, TheJobRunsAgainAndItsWatchersSeeWhy) {
  const TemporaryFolder folder;
  const ServerOptions options = {.data_dir = folder.path(),
                                 .flags = {"--checkpoint-interval", "0"}};
  wan::v1::GenerationRequest request = TinyRequest(/*steps=*/6);
  request.set_width(128);
  request.set_height(96);
  request.set_num_frames(9);
  request.set_image(ReadWholeFile(std::string(WAN_GOLDEN_DIR) + "/pipelines/ti2v-i2v.png"));
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  std::string name;
  std::string follower;
  int64_t seen = 0;
  {
    TestServer server(options);
    name = server.Submit(request).name();
    follower = server.Submit(TinyRequest()).name();
    if (GetParam() != "accepted") {
      seen = server.Watch(name, 0, Reaches(GetParam())).back().sequence();
    }
    server.Kill();
  }
  TestServer server(options);
  const std::vector<Event> log = server.Watch(name);
  for (size_t i = 0; i < log.size(); ++i) ASSERT_EQ(log[i].sequence(), static_cast<int64_t>(i + 1));
  EXPECT_GE(log.back().sequence(), seen) << "an event that a watcher saw is gone";
  ASSERT_TRUE(log.back().has_completed()) << log.back().DebugString();
  const wan::v1::Job job = server.Get(name);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED);
  int requeued = 0;
  int next_step = 1;
  for (const Event& event : log) {
    if (event.has_requeued()) {
      ++requeued;
      next_step = 1;
      EXPECT_FALSE(event.requeued().reason().empty());
    } else if (event.has_resumed()) {
      next_step = event.resumed().step() + 1;
    } else if (event.has_step_progress()) {
      // Steps follow each other; one that comes again is told before.
      EXPECT_EQ(event.step_progress().step(), next_step++);
    }
  }
  // Killed before it began it is simply still queued; the last stages may end before the kill
  // lands.
  EXPECT_EQ(job.attempt(), requeued + 1);
  if (GetParam().rfind("Step_", 0) == 0) {
    EXPECT_EQ(requeued, 1);
  }
  // What the second attempt made, from a savepoint or not, is what an undisturbed one makes.
  const wan::v1::Job undisturbed = server.Await(server.Submit(request).name());
  ASSERT_EQ(undisturbed.artifacts_size(), job.artifacts_size());
  for (int i = 0; i < job.artifacts_size(); ++i) {
    EXPECT_EQ(job.artifacts(i).sha256(), undisturbed.artifacts(i).sha256());
    EXPECT_EQ(server.Download(job.artifacts(i).name()).size(), job.artifacts(i).size_bytes());
  }
  EXPECT_EQ(server.Await(follower).state(), wan::v1::JOB_STATE_COMPLETED);
}

INSTANTIATE_TEST_SUITE_P(EachStage, KillTest,
                         testing::Values("accepted", "Total_Execution", "TI2V_Preprocess",
                                         "T5_Encoding", "VAE_Encoding", "Step_0_Loading",
                                         "Step_0_Inference", "Step_1_Loading", "Step_1_Inference",
                                         "Step_2_Loading", "Step_2_Inference", "Step_3_Loading",
                                         "Step_3_Inference", "Step_4_Loading", "Step_4_Inference",
                                         "Step_5_Loading", "Step_5_Inference", "VAE_Decoding",
                                         "Video_Encoding", "Queue_Wait"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wan::e2e
