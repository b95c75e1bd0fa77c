// Servers with several device groups: which job runs where, and what becomes of jobs when a group
// leaves.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/jobs/start_time.h"
#include "tests/server/jobs/groups_fixture.h"

namespace wan::server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;
using wan::v1::MODEL_STATE_FAILED;
using wan::v1::MODEL_STATE_READY;
using wan::v1::MODEL_STATE_UNLOADED;

TEST(StartBehindTest, OneGroupHasAllTheWorkBeforeIt) {
  EXPECT_EQ(StartBehind({absl::Seconds(5)}, 3, absl::Seconds(7)), absl::Seconds(12));
}

TEST(StartBehindTest, SeveralGroupsShareIt) {
  const auto seconds = [](int a, int b) {
    return std::vector<absl::Duration>{absl::Seconds(a), absl::Seconds(b)};
  };
  EXPECT_EQ(StartBehind(seconds(5, 3), 0, absl::ZeroDuration()), absl::Seconds(3));
  EXPECT_EQ(StartBehind(seconds(5, 3), 1, absl::Seconds(10)), absl::Seconds(5));
  EXPECT_EQ(StartBehind(seconds(5, 3), 2, absl::Seconds(20)), absl::Seconds(13));
  EXPECT_NEAR(absl::ToDoubleSeconds(StartBehind(seconds(0, 0), 1000, absl::Seconds(1000))), 500, 8);
}

wan::DeviceUse Gpu(const std::string& device) {
  wan::DeviceUse gpu{device, "H200", "GPU-" + device};
  gpu.usage.gpu.power_watts = 500;
  gpu.usage.gpu.energy_joules = 0;
  return gpu;
}

TEST_F(GroupsTest, AReportHasTheShareOfEachGpuOfItsGroup) {
  wan::DeviceUse first = Gpu("cuda:0");
  first.usage.sm_activity_percent = 98;
  first.usage.gpu.temperature_peak_celsius = 71;
  first.usage.gpu.throttled_seconds = 3;
  first.usage.gpu_memory_peak_bytes = 90;
  first.usage.gpu_weights_peak_bytes = 60;
  first.exchanged_bytes = 1000;
  first.exchange_seconds = 0.5;
  for (const auto& engine : engines_) engine->monitor().SetGroupUse({first, Gpu("cuda:1")});
  OpenGroups();
  const std::string job = Create();
  RunToEnd(job);
  const wan::v1::JobReport report = *service_->Report(job);
  ASSERT_EQ(report.devices_size(), 2);
  const wan::v1::DeviceShare& share = report.devices(0);
  EXPECT_EQ(share.device(), "cuda:0");
  EXPECT_EQ(share.name(), "H200");
  EXPECT_EQ(share.uuid(), "GPU-cuda:0");
  EXPECT_EQ(share.sm_activity_percent(), 98);
  EXPECT_EQ(share.temperature_peak_celsius(), 71);
  EXPECT_EQ(share.throttled_seconds(), 3);
  EXPECT_EQ(share.gpu_memory_peak_bytes(), 90u);
  EXPECT_EQ(share.gpu_weights_peak_bytes(), 60u);
  EXPECT_EQ(share.exchanged_bytes(), 1000u);
  EXPECT_EQ(share.exchange_seconds(), 0.5);
  EXPECT_EQ(report.devices(1).device(), "cuda:1");
  EXPECT_EQ(report.devices(1).power_watts(), 500);
  EXPECT_TRUE(report.devices(1).has_energy_joules()) << "0 is a figure";
  EXPECT_FALSE(report.devices(1).has_temperature_peak_celsius());
  EXPECT_FALSE(report.devices(1).has_gpu_memory_peak_bytes());
  EXPECT_FALSE(report.devices(1).has_exchanged_bytes());
  EXPECT_FALSE(report.devices(1).has_sm_activity_percent());
  for (const auto& engine : engines_) engine->monitor().SetGroupUse({});
  const std::string alone = Create();
  RunToEnd(alone);
  EXPECT_EQ(service_->Report(alone)->devices_size(), 0);
}

TEST_F(GroupsTest, EachGroupRunsAJobInTheQueuesOrder) {
  OpenGroups();
  HoldAll("T5_Encoding");
  const std::string first = Create();
  const std::string second = Create();
  AwaitAllHeld("T5_Encoding");
  const std::string third = Create();
  const std::string fourth = Create();
  EXPECT_NE(Get(first).group(), Get(second).group());
  EXPECT_EQ(Get(first).state(), JOB_STATE_RUNNING);
  EXPECT_EQ(Get(second).state(), JOB_STATE_RUNNING);
  EXPECT_EQ(Get(third).queue_position(), 0);
  EXPECT_EQ(Get(fourth).queue_position(), 1);
  EXPECT_FALSE(Get(third).has_group());
  const JobStats stats = service_->Stats();
  EXPECT_EQ(stats.running_total, 2);
  EXPECT_EQ(stats.groups[static_cast<size_t>(Get(first).group())].job, first);
  EXPECT_EQ(stats.groups[static_cast<size_t>(Get(second).group())].job, second);
  const int free = Get(second).group();
  engines_[static_cast<size_t>(free)]->Release("T5_Encoding");
  for (const std::string& job : {second, third, fourth}) RunToEnd(job);
  EXPECT_EQ(Get(third).group(), free);
  EXPECT_EQ(Get(fourth).group(), free);
  EXPECT_EQ(Get(first).state(), JOB_STATE_RUNNING);
  EXPECT_EQ(service_->Report(third)->group(), free);
  ReleaseAll("T5_Encoding");
  EXPECT_EQ(Brief(RunToEnd(first)).back(), "completed");
}

TEST_F(GroupsTest, ThreeGroupsRunThreeJobs) {
  MakeEngines(3);
  OpenGroups();
  HoldAll("Step_1_Inference");
  std::vector<std::string> jobs;
  for (int i = 0; i < 7; ++i) jobs.push_back(Create());
  AwaitAllHeld("Step_1_Inference");
  EXPECT_EQ(service_->Stats().running_total, 3);
  EXPECT_EQ(service_->Stats().queued_total, 4);
  ReleaseAll("Step_1_Inference");
  for (const std::string& job : jobs) EXPECT_EQ(Brief(RunToEnd(job)).back(), "completed");
}

TEST_F(GroupsTest, AGroupPrefersTheModelThatItRanLastToOneThatAnotherRan) {
  OpenGroups({"m", "n"});
  HoldAll("T5_Encoding");
  HoldAll("VAE_Decoding");
  const std::string m1 = Create(For("m"));
  const std::string n1 = Create(For("n"));
  AwaitAllHeld("T5_Encoding");
  const std::string n2 = Create(For("n"));
  const std::string m2 = Create(For("m"));
  fakes::FakeEngine& of_m = EngineOf(m1);
  fakes::FakeEngine& of_n = EngineOf(n1);
  of_m.Release("T5_Encoding");
  of_m.AwaitHeld("VAE_Decoding");
  of_m.Hold("T5_Encoding");
  of_m.Release("VAE_Decoding");
  RunToEnd(m1);
  AwaitRunning(m2);
  EXPECT_EQ(&EngineOf(m2), &of_m) << "the job before it is of the model that the other group ran";
  EXPECT_EQ(Get(n2).state(), JOB_STATE_QUEUED);
  of_n.Release("VAE_Decoding");
  of_n.Release("T5_Encoding");
  RunToEnd(n2);
  EXPECT_EQ(&EngineOf(n2), &of_n);
  of_m.Release("T5_Encoding");
  RunToEnd(m2);
}

TEST_F(GroupsTest, AJobIsPassedOverOnceAtMost) {
  OpenGroups({"m", "n"});
  HoldAll("T5_Encoding");
  const std::string m1 = Create(For("m"));
  const std::string n1 = Create(For("n"));
  AwaitAllHeld("T5_Encoding");
  std::vector<std::string> waiting;
  for (const char* const model : {"n", "m", "m"}) waiting.push_back(Create(For(model)));
  fakes::FakeEngine& of_m = EngineOf(m1);
  of_m.Release("T5_Encoding");
  for (const std::string& job : waiting) RunToEnd(job);
  std::vector<std::string> models;
  for (const GenerationRequest& request : of_m.Generated()) models.push_back(request.model);
  EXPECT_THAT(models, ElementsAre("m", "m", "n", "m"));
  ReleaseAll("T5_Encoding");
  RunToEnd(n1);
}

TEST_F(GroupsTest, APreferenceNeitherBeatsPriorityNorLetsAGroupIdle) {
  OpenGroups({"m", "n"});
  HoldAll("T5_Encoding");
  const std::string m1 = Create(For("m"));
  const std::string n1 = Create(For("n"));
  AwaitAllHeld("T5_Encoding");
  const std::string n2 = Create(For("n", 1));
  const std::string m2 = Create(For("m"));
  fakes::FakeEngine& of_m = EngineOf(m1);
  of_m.Release("T5_Encoding");
  for (const std::string& job : {m1, n2, m2}) RunToEnd(job);
  EXPECT_EQ(&EngineOf(n2), &of_m) << "its priority is higher";
  EXPECT_EQ(&EngineOf(m2), &of_m);
  std::vector<std::string> models;
  for (const GenerationRequest& request : of_m.Generated()) models.push_back(request.model);
  EXPECT_THAT(models, ElementsAre("m", "n", "m"));
  const std::string n3 = Create(For("n"));
  RunToEnd(n3);
  EXPECT_EQ(&EngineOf(n3), &of_m) << "the other group is busy, and this one would idle";
  ReleaseAll("T5_Encoding");
  RunToEnd(n1);
}

TEST_F(GroupsTest, AModelStaysInTheGroupsThatMayHaveIt) {
  options_.may_have = [](int group, std::string_view model) {
    return (group == 0) == (model == "m");
  };
  OpenGroups({"m", "n"});
  EXPECT_EQ(PlacesOf("m"), (std::map<int, wan::v1::ModelState>{{0, MODEL_STATE_READY}}));
  EXPECT_EQ(PlacesOf("n"), (std::map<int, wan::v1::ModelState>{{1, MODEL_STATE_READY}}));
  EXPECT_THAT(engines_[0]->Loaded(), SizeIs(1));
  EXPECT_THAT(engines_[1]->Loaded(), SizeIs(1));
  HoldAll("T5_Encoding");
  const std::string m1 = Create(For("m"));
  const std::string m2 = Create(For("m"));
  const std::string n1 = Create(For("n"));
  AwaitAllHeld("T5_Encoding");
  EXPECT_EQ(Get(m1).group(), 0);
  EXPECT_EQ(Get(m2).state(), JOB_STATE_QUEUED) << "the free group may not have its model";
  EXPECT_EQ(Get(n1).group(), 1) << "no group waits for a job that it cannot run";
  ReleaseAll("T5_Encoding");
  for (const std::string& job : {m1, m2, n1}) RunToEnd(job);
  EXPECT_EQ(Get(m2).group(), 0);
}

TEST_F(GroupsTest, NoGroupMayHaveTheModel) {
  options_.may_have = [](int, std::string_view model) { return model == "m"; };
  OpenGroups();
  const auto refused = service_->model_operations().BeginLoad({"x", "synthetic:ti2v-5b"});
  EXPECT_THAT(FieldsOf(refused.status()), ElementsAre("name"));
  EXPECT_FALSE(service_->models().StateOf("x").has_value());
}

TEST_F(GroupsTest, EachRunningJobIsCancelledAlone) {
  OpenGroups();
  HoldAll("Step_1_Inference");
  const std::string first = Create();
  wan::v1::GenerationRequest with_deadline = Request();
  with_deadline.mutable_deadline()->set_seconds(absl::ToUnixSeconds(clock_.Now()) + 100);
  const std::string second = Create(with_deadline);
  AwaitAllHeld("Step_1_Inference");
  clock_.Advance(absl::Seconds(101));
  EXPECT_EQ(Brief(RunToEnd(second)).back(), "cancelled deadline exceeded");
  EXPECT_EQ(Get(first).state(), JOB_STATE_RUNNING);
  ASSERT_TRUE(calls().Cancel(first, "CancelJob").ok());
  EXPECT_EQ(Brief(RunToEnd(first)).back(), "cancelled CancelJob");
  EXPECT_EQ(service_->Stats().running_total, 0);
}

class GroupsPreemptionTest : public GroupsTest {
 protected:
  GroupsPreemptionTest() {
    options_.preempt_priority_gap = 10;
    for (const auto& engine : engines_) engine->TakeTime("Step_Inference", absl::Seconds(10));
    OpenGroups();
    RunToEnd(Create());  // from now on times are known
    HoldAll("Step_0_Inference");
  }
};

TEST_F(GroupsPreemptionTest, TheJobOfTheLowestPriorityGivesWay) {
  const std::string low = Create(For("m", 0));
  const std::string middle = Create(For("m", 5));
  AwaitAllHeld("Step_0_Inference");
  const std::string high = Create(For("m", 50));
  EngineOf(middle).Release("Step_0_Inference");
  RunToEnd(middle);
  RunToEnd(high);
  EXPECT_EQ(Get(middle).attempt(), 1);
  EXPECT_EQ(Get(high).group(), Get(middle).group());
  const std::string higher = Create(For("m", 60));
  RunToEnd(higher);
  ReleaseAll("Step_0_Inference");
  RunToEnd(low);
  EXPECT_EQ(Get(low).attempt(), 1);
}

TEST_F(GroupsPreemptionTest, TheJobThatTakesOverRunsInItsGroup) {
  const std::string low = Create(For("m", 0));
  const std::string middle = Create(For("m", 5));
  AwaitAllHeld("Step_0_Inference");
  const std::string high = Create(For("m", 50));
  const int group = Get(low).group();
  EngineOf(low).Release("Step_0_Inference");
  RunToEnd(high);
  EXPECT_EQ(Get(high).group(), group);
  RunToEnd(low);
  EXPECT_EQ(Get(low).attempt(), 2);
  EXPECT_THAT(Brief(RunToEnd(low)), Contains("requeued preempted by " + high));
  ReleaseAll("Step_0_Inference");
  RunToEnd(middle);
  EXPECT_EQ(Get(middle).attempt(), 1);
}

TEST_F(GroupsPreemptionTest, OneJobGivesWayForEachThatTakesOver) {
  const std::string first = Create(For("m", 0));
  const std::string second = Create(For("m", 0));
  AwaitAllHeld("Step_0_Inference");
  const std::string high = Create(For("m", 50));
  ReleaseAll("Step_0_Inference");
  for (const std::string& job : {high, first, second}) {
    EXPECT_EQ(Brief(RunToEnd(job)).back(), "completed");
  }
  EXPECT_EQ(Get(first).attempt() + Get(second).attempt(), 3);
}

TEST_F(GroupsTest, ADrainEndsEveryRunningJob) {
  OpenGroups();
  HoldAll("Step_1_Inference");
  const std::string first = Create();
  const std::string second = Create();
  AwaitAllHeld("Step_1_Inference");
  const std::string third = Create();
  absl::Notification done;
  wan::v1::DrainResponse response;
  service_->Drain(StopMode::kRequeue, absl::Minutes(1),
                  [&](const absl::StatusOr<wan::v1::DrainResponse>& outcome) {
                    ASSERT_TRUE(outcome.ok()) << outcome.status();
                    const wan::v1::DrainResponse& drained = *outcome;
                    response = drained;
                    done.Notify();
                  });
  done.WaitForNotification();
  ASSERT_EQ(response.jobs_size(), 2);
  EXPECT_EQ(response.job(), response.jobs(0).job());
  EXPECT_NE(response.jobs(0).job(), response.jobs(1).job());
  EXPECT_FALSE(response.jobs(1).job_ended());
  EXPECT_EQ(response.queued_jobs(), 3);
  for (const std::string& job : {first, second, third}) {
    EXPECT_EQ(Get(job).state(), JOB_STATE_QUEUED);
    EXPECT_THAT(Get(job).lost_attempts(), IsEmpty());
  }
}

TEST_F(GroupsTest, AStopLetsTheJobsEndThatMay) {
  OpenGroups();
  HoldAll("Step_1_Inference");
  const std::string first = Create();
  const std::string second = Create();
  AwaitAllHeld("Step_1_Inference");
  absl::Notification done;
  service_->Drain(StopMode::kFinish, absl::Hours(1),
                  [&](const absl::StatusOr<wan::v1::DrainResponse>& outcome) {
                    ASSERT_TRUE(outcome.ok()) << outcome.status();
                    const wan::v1::DrainResponse& drained = *outcome;
                    EXPECT_EQ(drained.jobs_size(), 2);
                    for (const wan::v1::DrainedJob& job : drained.jobs())
                      EXPECT_TRUE(job.job_ended());
                    done.Notify();
                  });
  ReleaseAll("Step_1_Inference");
  done.WaitForNotification();
  EXPECT_EQ(Get(first).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(second).state(), JOB_STATE_COMPLETED);
}

TEST_F(GroupsTest, AKillLosesTheAttemptsOfAllGroups) {
  options_.savepoint_interval = absl::Hours(1);  // nothing is written while the folder is copied
  OpenGroups();
  HoldAll("Step_2_Inference");
  const std::string first = Create();
  const std::string second = Create();
  AwaitAllHeld("Step_2_Inference");
  const std::string waiting = Create();
  CopyFolder(folder_.path() / "data", folder_.path() / "killed");
  ReleaseAll("Step_2_Inference");
  MakeEngines(2);
  OpenGroupsIn(folder_.path() / "killed");
  for (const std::string& job : {first, second, waiting}) {
    EXPECT_EQ(Brief(RunToEnd(job)).back(), "completed");
  }
  for (const std::string& job : {first, second}) {
    EXPECT_EQ(Get(job).attempt(), 2);
    EXPECT_THAT(Get(job).lost_attempts(), SizeIs(1));
    EXPECT_THAT(Brief(RunToEnd(job)),
                Contains("requeued server restarted while the job was running"));
  }
  EXPECT_EQ(Get(waiting).attempt(), 1);
}

TEST_F(GroupsTest, AModelIsReadyWhileOneGroupHasIt) {
  engines_[1]->FailAt("Model_Initialization", absl::ResourceExhaustedError("too large"));
  OpenGroups();
  EXPECT_EQ(PlacesOf("m"),
            (std::map<int, wan::v1::ModelState>{{0, MODEL_STATE_READY}, {1, MODEL_STATE_FAILED}}));
  const wan::v1::Model model = *service_->models().Get("m");
  EXPECT_EQ(model.state(), MODEL_STATE_READY);
  EXPECT_FALSE(model.has_error());
  EXPECT_EQ(model.operations(0).error().code(), 0);
  EXPECT_EQ(model.placements(1).error().message(), "too large");
  EXPECT_GT(model.placements(0).components_size(), 0);
  EXPECT_EQ(model.components_size(), model.placements(0).components_size());
  for (int i = 0; i < 3; ++i) {
    const std::string job = Create();
    RunToEnd(job);
    EXPECT_EQ(Get(job).group(), 0);
  }
  LoadModel("m");  // where it is missing
  EXPECT_EQ(engines_[0]->Loads(), 1);
  EXPECT_EQ(engines_[1]->Loaded().size(), 2u);
  EXPECT_EQ(PlacesOf("m").at(1), MODEL_STATE_READY);
  absl::Notification unloaded;
  service_->model_operations().Unload("m", [&](const absl::StatusOr<wan::v1::Model>& unload) {
    EXPECT_TRUE(unload.ok()) << unload.status();
    unloaded.Notify();
  });
  unloaded.WaitForNotification();
  EXPECT_EQ(PlacesOf("m"), (std::map<int, wan::v1::ModelState>{{0, MODEL_STATE_UNLOADED},
                                                               {1, MODEL_STATE_UNLOADED}}));
  for (const auto& engine : engines_) EXPECT_THAT(engine->Models(), IsEmpty());
}

TEST_F(GroupsTest, ALoadThatFailsEverywhereFails) {
  for (const auto& engine : engines_) {
    engine->FailAt("Model_Initialization", absl::DataLossError("damaged"));
  }
  OpenGroups({});
  absl::Notification done;
  service_->model_operations().Load({"m", "synthetic:ti2v-5b"}, [&](const auto& model) {
    EXPECT_EQ(model.status().code(), absl::StatusCode::kDataLoss);
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(service_->models().GetEnded("m")->state(), MODEL_STATE_FAILED);
  EXPECT_EQ(service_->models().StateOf("m"), std::nullopt);
}

TEST_F(GroupsTest, AWarmupRunsInEveryGroup) {
  OpenGroups();
  const int before = engines_[0]->Warmups();
  absl::Notification done;
  service_->model_operations().Warmup("m", {}, [&](const auto& model) {
    EXPECT_TRUE(model.ok()) << model.status();
    done.Notify();
  });
  done.WaitForNotification();
  for (const auto& engine : engines_) EXPECT_EQ(engine->Warmups(), before + 1);
}

TEST_F(GroupsTest, AJobOfALostGroupRunsInAnother) {
  OpenGroups();
  HoldAll("Step_1_Inference");
  const std::string first = Create();
  const auto tied = calls().Create(Request("tied"), /*tied_to_caller=*/true);
  ASSERT_TRUE(tied.ok()) << tied.status();
  const std::string second = tied->job.name();
  AwaitAllHeld("Step_1_Inference");
  const int lost = Get(second).group();
  EngineOf(second).LoseDeviceAt("Step_2_Inference");
  EngineOf(second).Release("Step_1_Inference");
  BlockingReader(*service_, second).Until([](const wan::v1::Event& event) {
    return event.has_requeued();
  });
  ReleaseAll("Step_1_Inference");
  for (const std::string& job : {first, second}) {
    EXPECT_EQ(Brief(RunToEnd(job)).back(), "completed");
    EXPECT_EQ(Get(job).group(), 1 - lost);
  }
  EXPECT_THAT(Brief(RunToEnd(second)), Contains("resumed 2"));
  EXPECT_EQ(Get(second).attempt(), 2);
  EXPECT_THAT(Get(second).lost_attempts(), SizeIs(1));
  losses_.AwaitGroup();
  EXPECT_THAT(losses_.groups(), ElementsAre(lost));
  EXPECT_EQ(losses_.devices(), 0);
  const JobStats stats = service_->Stats();
  EXPECT_TRUE(IsDeviceLost(stats.groups[static_cast<size_t>(lost)].problem));
  EXPECT_TRUE(stats.groups[static_cast<size_t>(1 - lost)].problem.ok());
  EXPECT_EQ(service_->models().StateOf("m"), MODEL_STATE_READY);
  EXPECT_EQ(PlacesOf("m").at(lost), MODEL_STATE_FAILED);
  EXPECT_EQ(Brief(RunToEnd(Create())).back(), "completed") << "the rest serves on";
  service_->CallerDone(second);
}

TEST_F(GroupsTest, TheLossOfTheLastGroupIsThatOfTheDevice) {
  OpenGroups();
  for (const auto& engine : engines_) engine->LoseDeviceAt("T5_Encoding");
  const std::string job = Create();
  losses_.AwaitDevice();
  EXPECT_THAT(losses_.groups(), SizeIs(1));
  EXPECT_EQ(losses_.devices(), 1);
  EXPECT_EQ(Get(job).state(), JOB_STATE_QUEUED);
  EXPECT_THAT(Get(job).lost_attempts(), SizeIs(2));
  EXPECT_TRUE(IsDeviceLost(calls().Create(Request(), false).status()));
}

TEST_F(GroupsTest, AModelThatOnlyTheLostGroupMayHaveIsFailed) {
  options_.may_have = [](int group, std::string_view model) {
    return (group == 0) == (model == "m");
  };
  OpenGroups({"m", "n"});
  engines_[0]->LoseDeviceAt("T5_Encoding");
  const std::string job = Create(For("m"));
  BlockingReader(*service_, job).Until([](const wan::v1::Event& event) {
    return event.has_requeued();
  });
  losses_.AwaitGroup();
  EXPECT_EQ(service_->models().StateOf("m"), MODEL_STATE_FAILED);
  EXPECT_EQ(ReasonOf(calls().Create(For("m"), false).status()), kReasonModelNotReady);
  EXPECT_EQ(Brief(RunToEnd(Create(For("n")))).back(), "completed");
  EXPECT_EQ(Get(job).state(), JOB_STATE_QUEUED);
}

TEST_F(GroupsTest, ACanaryThatFailsTakesOneGroupOut) {
  engines_[1]->SetCanary(DeviceLostError("an illegal memory access was encountered"));
  OpenGroups();
  EXPECT_EQ(Brief(RunToEnd(Create())).back(), "completed");
  EXPECT_EQ(engines_[1]->Loads(), 0);
  losses_.AwaitGroup();
  EXPECT_THAT(losses_.groups(), ElementsAre(1));
}

}  // namespace
}  // namespace wan::server
