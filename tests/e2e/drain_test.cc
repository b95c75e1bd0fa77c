// A server that is drained: what becomes of the running job, and what goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::HasSubstr;
using wan::v1::Event;

constexpr int kNotServing = 2;  // of grpc.health.v1

// Steps of a small video, with every file that shows bits.
wan::v1::GenerationRequest Request(int steps) {
  wan::v1::GenerationRequest request = TinyRequest(steps);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  return request;
}

// Takes minutes.
wan::v1::GenerationRequest LongRequest() {
  wan::v1::GenerationRequest request = TinyRequest(/*steps=*/1000);
  request.set_width(512);
  request.set_height(512);
  request.set_num_frames(33);
  return request;
}

std::function<bool(const Event&)> Step(int step) {
  return [step](const Event& event) {
    return event.has_step_progress() && event.step_progress().step() >= step;
  };
}

ProcessResult Wanctl(const TestServer& server, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {std::string(WAN_BINARY_DIR) + "/wanctl", "--server", server.grpc_address()});
  return RunProcess(arguments);
}

std::map<std::string, std::string> DigestsOf(const wan::v1::Job& job) {
  std::map<std::string, std::string> digests;
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    digests[artifact.name().substr(job.name().size())] = artifact.sha256();
  }
  return digests;
}

TEST(DrainTest, TheRunningJobEndsAndItsVideoIsThere) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path(), .flags = {"--shutdown-mode", "finish"}});
  const std::string running = server.Submit(Request(/*steps=*/400)).name();
  server.Watch(running, 0, Step(1));
  server.Submit(TinyRequest());
  const ProcessResult drained = Wanctl(server, {"drain", "--timeout", "600"});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(drained.out, running + " has ended\n1 job waits for the restart\n");
  EXPECT_EQ(server.HealthNow(), kNotServing);
  EXPECT_THAT(server.Metrics(), HasSubstr("wan_draining 1"));
  EXPECT_THAT(Wanctl(server, {"info"}).out, HasSubstr("Draining:"));
  const ProcessResult refused = Wanctl(server, {"submit", "--model", "tiny", "--prompt", "A cat."});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("the server is being drained"));
  const wan::v1::Job job = server.Get(running);
  ASSERT_EQ(job.artifacts_size(), 2);
  EXPECT_EQ(server.Download(job.artifacts(0).name()).size(), job.artifacts(0).size_bytes());
  EXPECT_EQ(server.Terminate(), 0) << server.Log();
}

TEST(DrainTest, AJobThatStopsGoesOnWithTheSameBits) {
  const TemporaryFolder folder;
  std::string undisturbed;
  std::string drained;
  const ServerOptions options = {.data_dir = folder.path()};
  {
    TestServer server(options);
    undisturbed = server.Submit(Request(/*steps=*/400)).name();
    server.Await(undisturbed);
    drained = server.Submit(Request(/*steps=*/400)).name();
    server.Watch(drained, 0, Step(10));
    // The watcher sees the job go back to the queue, while the server is there.
    std::thread watcher(
        [&] { server.Watch(drained, 0, [](const Event& event) { return event.has_requeued(); }); });
    const ProcessResult result = Wanctl(server, {"drain", "--timeout", "0"});
    EXPECT_EQ(result.out, drained +
                              " has stopped and goes on after the server's restart\n"
                              "1 job waits for the restart\n");
    watcher.join();
    EXPECT_EQ(server.Get(drained).state(), wan::v1::JOB_STATE_QUEUED);
    EXPECT_EQ(server.Terminate(), 0) << server.Log();
  }
  TestServer server(options);
  const std::vector<Event> events = server.Watch(drained);
  int resumed = 0;
  for (const Event& event : events) {
    if (event.has_resumed()) resumed = event.resumed().step();
  }
  EXPECT_GE(resumed, 10);
  const wan::v1::Job job = server.Get(drained);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
  EXPECT_EQ(job.lost_attempts_size(), 0);
  EXPECT_EQ(DigestsOf(job), DigestsOf(server.Get(undisturbed)));
  EXPECT_EQ(DigestsOf(job).size(), 2u);
}

// A job that needs minutes is not worth waiting for, and a model that loads in a second.
TEST(DrainTest, ByDefaultAJobThatNeedsLongerThanARestartStopsAtOnce) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path(), .flags = {"--shutdown-grace-seconds", "3600"}});
  const std::string running = server.Submit(LongRequest()).name();
  server.Watch(running, 0, Step(1));
  const ProcessResult drained = Wanctl(server, {"drain"});
  EXPECT_THAT(drained.out, HasSubstr(running + " has stopped"));
  server.AwaitLog("\"message\":\"running job\",\"job\":\"" + running + "\"");
}

TEST(DrainTest, SigtermEndsADrain) {
  const TemporaryFolder folder;
  std::string running;
  {
    TestServer server({.data_dir = folder.path(),
                       .flags = {"--shutdown-mode", "finish", "--shutdown-grace-seconds", "0"}});
    running = server.Submit(LongRequest()).name();
    server.Watch(running, 0, Step(1));
    ProcessResult drained;
    std::thread drainer([&] { drained = Wanctl(server, {"drain", "--timeout", "3600"}); });
    wan::v1::ServerInfo info;
    while (!info.draining()) {  // each call is an event of the server's
      grpc::ClientContext context;
      ASSERT_TRUE(server.telemetry().GetServerInfo(&context, {}, &info).ok());
    }
    EXPECT_EQ(server.Get(running).state(), wan::v1::JOB_STATE_RUNNING);
    EXPECT_EQ(server.Terminate(), 0) << server.Log();
    drainer.join();
    EXPECT_EQ(drained.exit_code, 0) << drained.err;
    EXPECT_THAT(drained.out, HasSubstr(running + " has stopped"));
  }
  TestServer server({.data_dir = folder.path()});
  const std::vector<Event> events =
      server.Watch(running, 0, [](const Event& event) { return event.has_resumed(); });
  EXPECT_TRUE(events.back().has_resumed());
  EXPECT_EQ(server.Get(running).lost_attempts_size(), 0);
}

// A job of higher priority takes over. The other one goes on later, as if nothing had been.
struct PreemptionCase {
  std::string name;
  std::vector<std::string> models;
  std::string model;
  std::vector<std::string> flags;
  std::string expert;  // of the step behind which the other job takes over
  // Of the job that is preempted; with 1, the low-noise expert begins early.
  double shift = 5;
};

constexpr int kPreemptedSteps = 400;

class PreemptionTest : public testing::TestWithParam<PreemptionCase> {};

TEST_P(PreemptionTest, ThePreemptedJobHasTheBitsOfAnUndisturbedOne) {
  const PreemptionCase& c = GetParam();
  const TemporaryFolder folder;
  ServerOptions options = {.data_dir = folder.path(), .models = c.models, .flags = c.flags};
  options.flags.insert(options.flags.end(), {"--preempt-priority-gap", "10"});
  TestServer server(options);
  // About a second is left for the other request to arrive.
  wan::v1::GenerationRequest request = Request(kPreemptedSteps);
  request.set_model(c.model);
  request.set_shift(c.shift);
  const wan::v1::Job undisturbed = server.Await(server.Submit(request).name());
  ASSERT_EQ(undisturbed.state(), wan::v1::JOB_STATE_COMPLETED) << undisturbed.error().message();

  const std::string low = server.Submit(request).name();
  server.Watch(low, 0, [&](const Event& event) {
    return Step(5)(event) && (c.expert.empty() || event.step_progress().expert() == c.expert);
  });
  wan::v1::GenerationRequest urgent = TinyRequest(/*steps=*/4, /*seed=*/8);
  urgent.set_model(c.model);
  urgent.set_priority(9);
  const std::string patient = server.Submit(urgent).name();  // its priority is not high enough
  urgent.set_priority(10);
  const std::string high = server.Submit(urgent).name();
  const wan::v1::Job first = server.Await(high);
  EXPECT_EQ(first.state(), wan::v1::JOB_STATE_COMPLETED) << first.error().message();
  const std::vector<Event> events = server.Watch(low);
  const wan::v1::Job job = server.Get(low);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.error().message();
  EXPECT_EQ(job.attempt(), 2);
  EXPECT_EQ(job.lost_attempts_size(), 0);
  std::vector<std::string> reasons;
  int steps = 0;
  int resumed = 0;
  for (const Event& event : events) {
    if (event.has_requeued()) reasons.push_back(event.requeued().reason());
    if (event.has_resumed()) resumed = event.resumed().step();
    steps += event.has_step_progress() ? 1 : 0;
  }
  EXPECT_THAT(reasons, testing::ElementsAre("preempted by " + high));
  EXPECT_GE(resumed, 5);
  EXPECT_EQ(steps, kPreemptedSteps) << "no step is computed twice";
  EXPECT_EQ(DigestsOf(job), DigestsOf(undisturbed));
  EXPECT_EQ(DigestsOf(job).size(), 2u);
  EXPECT_EQ(server.Await(patient).state(), wan::v1::JOB_STATE_COMPLETED);
}

std::vector<std::string> A14b() {
  return {"t2v=" + std::string(WAN_CHECKPOINT_DIR) + "/t2v-a14b/original"};
}

// With policy disk an expert's weights are dropped and read again whenever the other one works.
const std::vector<std::string>& FromDisk() {
  static const auto* const flags = new std::vector<std::string>{
      "--residency-policy", "transformer=disk", "--residency-policy", "transformer_2=disk"};
  return *flags;
}

INSTANTIATE_TEST_SUITE_P(
    Models, PreemptionTest,
    testing::Values(PreemptionCase{"OneExpert", {ServerOptions::TinyModel()}, "tiny", {}, ""},
                    PreemptionCase{"HighNoiseExpert", A14b(), "t2v", {}, "high"},
                    PreemptionCase{"LowNoiseExpert", A14b(), "t2v", {}, "low", /*shift=*/1},
                    PreemptionCase{"HighNoiseExpertFromDisk", A14b(), "t2v", FromDisk(), "high"},
                    PreemptionCase{"LowNoiseExpertFromDisk", A14b(), "t2v", FromDisk(), "low",
                                   /*shift=*/1}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace wan::e2e
