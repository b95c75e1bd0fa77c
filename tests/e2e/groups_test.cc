// Two device groups of one server make two videos at once, with the bits of a server with one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::HasSubstr;
using wan::v1::Event;

// Two steps at a size of which a processor makes short work.
wan::v1::GenerationRequest DemoRequest(int64_t seed) {
  wan::v1::GenerationRequest request;
  request.set_model("demo");
  request.set_prompt("a red circle moves left to right over a dark blue background");
  request.set_width(128);
  request.set_height(128);
  request.set_num_frames(9);
  request.set_steps(2);
  request.set_seed(seed);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  return request;
}

constexpr int64_t kSeeds[] = {1, 2, 3, 4};

// The digest of each seed's video, and the groups that made them.
struct Made {
  std::map<int64_t, std::string> digests;
  std::set<int> groups;
};

Made MakeAll(TestServer& server) {
  std::vector<std::string> names;
  for (const int64_t seed : kSeeds) names.push_back(server.Submit(DemoRequest(seed)).name());
  Made made;
  for (const std::string& name : names) {
    const wan::v1::Job job = server.Await(name);
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.ShortDebugString();
    if (job.artifacts_size() == 1) {
      made.digests[job.request().seed()] = job.artifacts(0).sha256();
    }
    made.groups.insert(job.group());
  }
  return made;
}

TEST(GroupsTest, TwoGroupsMakeTheVideosOfOne) {
  const TemporaryFolder one_folder;
  TestServer one({.data_dir = one_folder.path(), .models = {}, .flags = {"--cpu-threads", "1"}});
  const Made of_one = MakeAll(one);
  EXPECT_EQ(of_one.digests.size(), std::size(kSeeds));
  EXPECT_EQ(of_one.groups, std::set<int>{0});
  EXPECT_EQ(one.Terminate(), 0);

  const TemporaryFolder two_folder;
  TestServer two({.data_dir = two_folder.path(),
                  .models = {},
                  .flags = {"--cpu-threads", "1", "--device", "cpu", "--device", "cpu"}});
  const Made of_two = MakeAll(two);
  EXPECT_EQ(of_two.digests, of_one.digests);
  EXPECT_EQ(of_two.groups, (std::set<int>{0, 1}));

  // Each group runs a job.
  wan::v1::GenerationRequest longer = DemoRequest(5);
  longer.set_steps(1000);
  const auto begun = [](const Event& event) { return event.has_step_progress(); };
  const std::string first = two.Submit(longer).name();
  const std::string second = two.Submit(longer).name();
  two.Watch(first, 0, begun);
  two.Watch(second, 0, begun);
  EXPECT_EQ(two.Get(first).state(), wan::v1::JOB_STATE_RUNNING);
  grpc::ClientContext context;
  wan::v1::ServerInfo info;
  ASSERT_TRUE(two.telemetry().GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.running_jobs(), 2);
  ASSERT_EQ(info.groups_size(), 2);
  EXPECT_EQ(std::set<std::string>({info.groups(0).job(), info.groups(1).job()}),
            std::set<std::string>({first, second}));
  EXPECT_EQ(info.groups(1).resident_models(0), "demo");
  const std::string metrics = two.Metrics();
  for (const char* const group : {"0", "1"}) {
    EXPECT_THAT(metrics, HasSubstr("wan_inflight_steps{group=\"" + std::string(group) + "\","));
  }
  EXPECT_EQ(two.Terminate(), 0);
}

// Both groups compute when the server is killed. Its next start goes on with both jobs, whichever
// group gets which, and their videos are those of a server that lived.
TEST(GroupsTest, JobsOfTwoGroupsGoOnAfterAKill) {
  const std::vector<std::string> flags = {
      "--cpu-threads", "1", "--checkpoint-interval", "0", "--device", "cpu", "--device", "cpu"};
  const auto request = [](int64_t seed) {
    wan::v1::GenerationRequest longer = DemoRequest(seed);
    longer.set_width(64);
    longer.set_height(64);
    longer.set_steps(60);
    return longer;
  };
  const TemporaryFolder folder;
  const TemporaryFolder other_folder;
  std::vector<std::string> jobs;
  {
    TestServer killed({.data_dir = folder.path(), .models = {}, .flags = flags});
    // Returns when both groups have it, so that both jobs begin at once.
    grpc::ClientContext context;
    wan::v1::LoadModelRequest load;
    load.set_name("demo");
    load.set_wait(true);
    wan::v1::Model model;
    ASSERT_TRUE(killed.models().LoadModel(&context, load, &model).ok());
    for (const int64_t seed : {1, 2}) jobs.push_back(killed.Submit(request(seed)).name());
    for (const std::string& job : jobs) {
      killed.Watch(job, 0, [](const Event& event) { return event.step_progress().step() >= 5; });
    }
    ASSERT_EQ(killed.Get(jobs[0]).state(), wan::v1::JOB_STATE_RUNNING);
    ASSERT_EQ(killed.Get(jobs[1]).state(), wan::v1::JOB_STATE_RUNNING);
    killed.Kill();
  }
  TestServer again({.data_dir = folder.path(), .models = {}, .flags = flags});
  TestServer undisturbed({.data_dir = other_folder.path(), .models = {}, .flags = flags});
  for (int64_t i = 0; i < 2; ++i) {
    const wan::v1::Job job = again.Await(jobs[static_cast<size_t>(i)]);
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.ShortDebugString();
    EXPECT_EQ(job.attempt(), 2);
    EXPECT_EQ(job.lost_attempts_size(), 1);
    int resumed = 0;
    for (const Event& event : again.Watch(job.name())) {
      if (event.has_resumed()) resumed = event.resumed().step() + 1;
    }
    EXPECT_GT(resumed, 0) << "it began anew";
    const wan::v1::Job whole = undisturbed.Await(undisturbed.Submit(request(i + 1)).name());
    EXPECT_EQ(job.artifacts(0).sha256(), whole.artifacts(0).sha256());
  }
  EXPECT_EQ(again.Terminate(), 0);
  EXPECT_EQ(undisturbed.Terminate(), 0);
}

// The members of one group make each video together.
TEST(GroupsTest, AGroupOfTwoMakesVideosStopsAndGoesOn) {
  const TemporaryFolder folder;
  TestServer group({.data_dir = folder.path(),
                    .models = {},
                    .flags = {"--cpu-threads", "1", "--device", "cpu,cpu"}});
  const Made first = MakeAll(group);
  EXPECT_EQ(first.digests.size(), std::size(kSeeds));
  EXPECT_EQ(first.groups, std::set<int>{0});

  grpc::ClientContext report_context;
  wan::v1::GetReportRequest of_job;
  of_job.set_job(group.Submit(DemoRequest(1)).name());
  group.Await(of_job.job());
  wan::v1::JobReport report;
  ASSERT_TRUE(group.videos().GetReport(&report_context, of_job, &report).ok());
  ASSERT_EQ(report.devices_size(), 2) << report.ShortDebugString();
  for (const wan::v1::DeviceShare& share : report.devices()) {
    EXPECT_EQ(share.device(), "cpu");
    EXPECT_GT(share.exchanged_bytes(), 0u) << share.ShortDebugString();
    EXPECT_FALSE(share.has_gpu_memory_peak_bytes());
  }
  EXPECT_GT(report.devices(0).exchange_seconds(), 0) << "for the flows and layers of the other";

  wan::v1::GenerationRequest longer = DemoRequest(5);
  longer.set_steps(1000);
  const std::string name = group.Submit(longer).name();
  group.Watch(name, 0, [](const Event& event) { return event.has_step_progress(); });
  grpc::ClientContext context;
  wan::v1::CancelJobRequest cancel;
  cancel.set_name(name);
  wan::v1::Job job;
  ASSERT_TRUE(group.videos().CancelJob(&context, cancel, &job).ok());
  EXPECT_EQ(group.Await(name).state(), wan::v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(MakeAll(group).digests, first.digests) << "after the cancelled one";
  EXPECT_EQ(group.Terminate(), 0);
}

}  // namespace
}  // namespace wan::e2e
