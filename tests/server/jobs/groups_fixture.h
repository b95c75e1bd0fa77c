// What the tests of servers with several device groups share.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "gtest/gtest.h"
#include "server/watch/listener.h"
#include "tests/fakes/fake_engine.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {

// Hears of groups and devices that are lost, and of savepoints.
class GroupListener final : public StateListener {
 public:
  void OnGroupLost(int group, std::string_view /*device*/, const absl::Status& problem) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(IsDeviceLost(problem)) << problem;
    groups_.push_back(group);
  }
  void OnDeviceLost(DeviceLoss, const absl::Status&) override {
    absl::MutexLock lock(&mutex_);
    ++devices_;
  }
  void OnSavepoint(const wan::v1::Job& job, int steps_done, double /*seconds*/) override {
    absl::MutexLock lock(&mutex_);
    savepoints_[job.name()] = steps_done;
  }
  // Waits until a savepoint of the job behind so many steps is on the disk.
  void AwaitSavepoint(const std::string& job, int steps_done) {
    absl::MutexLock lock(&mutex_);
    const auto written = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return savepoints_[job] == steps_done;
    };
    mutex_.Await(absl::Condition(&written));
  }
  std::vector<int> groups() {
    absl::MutexLock lock(&mutex_);
    return groups_;
  }
  void AwaitDevice() {
    absl::MutexLock lock(&mutex_);
    const auto lost = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return devices_ > 0; };
    mutex_.Await(absl::Condition(&lost));
  }
  void AwaitGroup() {
    absl::MutexLock lock(&mutex_);
    const auto lost = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !groups_.empty(); };
    mutex_.Await(absl::Condition(&lost));
  }
  int devices() {
    absl::MutexLock lock(&mutex_);
    return devices_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<int> groups_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> savepoints_ ABSL_GUARDED_BY(mutex_);
  int devices_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A service on two fake engines, a group each, unless a test makes other ones.
class GroupsTest : public ServiceTest {
 protected:
  GroupsTest() {
    options_.listeners = {&losses_};
    options_.savepoint_interval = absl::ZeroDuration();
    MakeEngines(2);
  }
  ~GroupsTest() override { Close(); }

  void MakeEngines(int count) {
    Close();
    engines_.clear();
    for (int i = 0; i < count; ++i) {
      engines_.push_back(std::make_unique<fakes::FakeEngine>(&clock_));
    }
  }

  void OpenGroups(const std::vector<std::string>& models = {"m"}) {
    OpenGroupsIn(folder_.path() / "data", models);
  }
  void OpenGroupsIn(const std::filesystem::path& folder,
                    const std::vector<std::string>& models = {"m"}) {
    options_.data_dir = folder;
    std::vector<Engine*> engines;
    for (const auto& engine : engines_) engines.push_back(engine.get());
    auto service = JobService::Open(options_, engines, clock_);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    for (const std::string& model : models) LoadModel(model);
  }

  static wan::v1::GenerationRequest For(const std::string& model, int priority = 0) {
    wan::v1::GenerationRequest request = Request(absl::StrCat(model, " at ", priority));
    request.set_model(model);
    request.set_priority(priority);
    return request;
  }

  void HoldAll(const std::string& stage) {
    for (const auto& engine : engines_) engine->Hold(stage);
  }
  void ReleaseAll(const std::string& stage) {
    for (const auto& engine : engines_) engine->Release(stage);
  }
  void AwaitAllHeld(const std::string& stage) {
    for (const auto& engine : engines_) engine->AwaitHeld(stage);
  }
  fakes::FakeEngine& EngineOf(const std::string& job) {
    return *engines_[static_cast<size_t>(Get(job).group())];
  }
  fakes::FakeEngine& OtherThan(const std::string& job) {
    return *engines_[static_cast<size_t>(1 - Get(job).group())];
  }

  // Waits until the job runs.
  void AwaitRunning(const std::string& job) {
    BlockingReader(*service_, job).Until([](const wan::v1::Event& event) {
      return event.has_stage_started();
    });
  }

  // What the model is in each group that may have it.
  std::map<int, wan::v1::ModelState> PlacesOf(const std::string& model) {
    std::map<int, wan::v1::ModelState> places;
    const auto found = service_->models().Get(model);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const wan::v1::ModelPlacement& placement : found->placements()) {
      places[placement.group()] = placement.state();
    }
    return places;
  }

  GroupListener losses_;
  std::vector<std::unique_ptr<fakes::FakeEngine>> engines_;
};

}  // namespace wan::server
