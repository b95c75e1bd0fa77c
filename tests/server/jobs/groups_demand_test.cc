// Models that a group loads because jobs wait for them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/groups_fixture.h"

namespace wan::server {
namespace {

using wan::v1::JOB_STATE_QUEUED;
using wan::v1::MODEL_STATE_FAILED;
using wan::v1::MODEL_STATE_READY;

// Group 0 has the model "m", and group 1 could not load it.
class GroupsDemandTest : public GroupsTest {
 protected:
  ~GroupsDemandTest() override { Close(); }

  void OpenWithout(const absl::Status& why, const std::vector<std::string>& models = {"m"}) {
    engines_[1]->FailAt("Model_Initialization", why);
    OpenGroups(models);
    ASSERT_EQ(PlacesOf("m").at(0), MODEL_STATE_READY);
    ASSERT_EQ(PlacesOf("m").at(1), MODEL_STATE_FAILED);
  }
  // Group 0 stands in the job that it returns.
  std::string HoldTheFirst() {
    engines_[0]->Hold("T5_Encoding");
    std::string job = Create();
    engines_[0]->AwaitHeld("T5_Encoding");
    return job;
  }
  // How often group 1 was asked to load "m".
  int LoadsOfTheSecond() {
    int loads = 0;
    for (const ModelSpec& spec : engines_[1]->Loaded()) loads += spec.name == "m" ? 1 : 0;
    return loads;
  }
  // Loads "m" in group 1, without a job that waits for it, and returns when that has ended.
  void LoadMissing() {
    struct Changes {
      absl::Mutex mutex;
      bool some ABSL_GUARDED_BY(mutex) = false;
    };
    // Shared, because a call of the watcher that has started may run when it is removed.
    const auto changes = std::make_shared<Changes>();
    const int64_t watcher = service_->models().AddWatcher([changes](const std::string&) {
      absl::MutexLock lock(&changes->mutex);
      changes->some = true;
    });
    service_->model_operations().LoadMissing("m", 1);
    while (PlacesOf("m").at(1) == wan::v1::MODEL_STATE_LOADING) {
      absl::MutexLock lock(&changes->mutex);
      changes->mutex.Await(absl::Condition(&changes->some));
      changes->some = false;
    }
    service_->models().RemoveWatcher(watcher);
  }
};

TEST_F(GroupsDemandTest, AnIdleGroupLoadsTheModelOfAJobThatWaitsForABusyOne) {
  OpenWithout(absl::ResourceExhaustedError("too large"));
  const std::string first = HoldTheFirst();
  const std::string second = Create();
  EXPECT_EQ(Get(second).state(), JOB_STATE_QUEUED);
  clock_.Advance(absl::Minutes(1));
  const std::string third = Create();
  for (const std::string& job : {second, third}) {
    EXPECT_EQ(Brief(RunToEnd(job)).back(), "completed");
    EXPECT_EQ(Get(job).group(), 1);
  }
  EXPECT_EQ(PlacesOf("m").at(1), MODEL_STATE_READY);
  EXPECT_EQ(engines_[0]->Loads(), 1);
  const wan::v1::Model model = *service_->models().Get("m");
  EXPECT_EQ(model.operations_size(), 2);
  EXPECT_TRUE(model.operations(1).has_end_time());
  engines_[0]->Release("T5_Encoding");
  RunToEnd(first);
}

TEST_F(GroupsDemandTest, NothingIsLoadedForAJobThatAGroupTakesAtOnce) {
  OpenWithout(absl::ResourceExhaustedError("too large"));
  clock_.Advance(absl::Hours(2));
  for (int i = 0; i < 3; ++i) RunToEnd(Create());
  EXPECT_EQ(LoadsOfTheSecond(), 1) << "that of the start";
}

TEST_F(GroupsDemandTest, TheGroupThatWasIdleLoadsWhenTheOtherHasBegun) {
  OpenWithout(absl::ResourceExhaustedError("too large"));
  clock_.Advance(absl::Hours(2));
  engines_[0]->Hold("T5_Encoding");
  const std::string first = Create();
  const std::string second = Create();  // whether or not group 0 has the first one by now
  RunToEnd(second);
  EXPECT_EQ(Get(second).group(), 1);
  engines_[0]->Release("T5_Encoding");
  RunToEnd(first);
}

TEST_F(GroupsDemandTest, ALoadThatFailsAgainIsTriedEverMoreRarely) {
  OpenWithout(absl::ResourceExhaustedError("too large"));
  const ModelTable& models = service_->models();
  absl::Duration pause = absl::Minutes(1);
  for (int loads = 1; loads < 10; ++loads) {
    EXPECT_EQ(LoadsOfTheSecond(), loads);
    clock_.Advance(pause - absl::Seconds(1));
    EXPECT_FALSE(models.MayLoadMissing("m", 1)) << pause;
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(models.MayLoadMissing("m", 1)) << pause;
    pause = std::min(2 * pause, absl::Hours(1));
    engines_[1]->FailAt("Model_Initialization", absl::ResourceExhaustedError("too large"));
    LoadMissing();
    EXPECT_EQ(PlacesOf("m").at(1), MODEL_STATE_FAILED);
    EXPECT_EQ(models.StateOf("m"), MODEL_STATE_READY);
  }
  clock_.Advance(absl::Hours(1));
  LoadMissing();
  EXPECT_EQ(PlacesOf("m").at(1), MODEL_STATE_READY);
  EXPECT_FALSE(models.MayLoadMissing("m", 1));
}

TEST_F(GroupsDemandTest, AnUnloadedModelMakesRoomAtOnce) {
  OpenWithout(absl::ResourceExhaustedError("too large"), {"m", "n"});
  const std::string first = HoldTheFirst();
  const std::string second = Create();
  absl::Notification unloaded;
  service_->model_operations().Unload("n", [&](const auto& model) {
    EXPECT_TRUE(model.ok()) << model.status();
    unloaded.Notify();
  });
  RunToEnd(second);
  EXPECT_EQ(Get(second).group(), 1);
  engines_[0]->Release("T5_Encoding");
  unloaded.WaitForNotification();
  RunToEnd(first);
}

TEST_F(GroupsDemandTest, WhatTimeDoesNotMendIsNotTriedAgain) {
  OpenWithout(absl::DataLossError("damaged"));
  clock_.Advance(absl::Hours(2));
  EXPECT_FALSE(service_->models().MayLoadMissing("m", 1));
}

TEST_F(GroupsDemandTest, AGroupLoadsWhatItMayHaveOnly) {
  options_.may_have = [](int group, std::string_view) { return group == 0; };
  OpenGroups();
  EXPECT_FALSE(service_->models().MayLoadMissing("m", 1));
}

TEST_F(GroupsDemandTest, AGroupOfAnotherKindOfCardLeavesTheJobsWhereTheyWerePlanned) {
  engines_[1]->NameDevice("A smaller card");
  OpenWithout(absl::ResourceExhaustedError("too large"));
  clock_.Advance(absl::Hours(2));
  EXPECT_FALSE(service_->models().MayLoadMissing("m", 1));
}

}  // namespace
}  // namespace wan::server
