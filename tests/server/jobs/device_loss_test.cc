// What becomes of jobs and callers when the engine's device is lost.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_FAILED;
using wan::v1::JOB_STATE_QUEUED;

// Hears of the loss as health and main do.
class LossListener final : public StateListener {
 public:
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override {
    absl::MutexLock lock(&mutex_);
    cause_ = cause;
    loss_ = problem;
  }
  absl::Status Await() {
    absl::MutexLock lock(&mutex_);
    const auto heard = [this] { return !loss_.ok(); };
    mutex_.Await(absl::Condition(&heard));
    return loss_;
  }
  DeviceLoss cause() {
    absl::MutexLock lock(&mutex_);
    return cause_;
  }

 private:
  absl::Mutex mutex_;
  DeviceLoss cause_ = DeviceLoss::kError;
  absl::Status loss_;
};

class DeviceLossTest : public ServiceTest {
 protected:
  DeviceLossTest() { options_.listeners = {&listener_}; }

  // The process that the supervisor starts, on a device that works.
  void Restart() {
    Close();
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    Open();
  }

  LossListener listener_;
};

TEST_F(DeviceLossTest, TheJobRunsAgainInTheNextProcess) {
  Open();
  engine_->Hold("Step_0_Inference");
  engine_->LoseDeviceAt("Step_1_Inference");
  const std::string running = Create();
  engine_->AwaitHeld("Step_0_Inference");
  const std::string waiting = Create();
  engine_->Release("Step_0_Inference");
  EXPECT_TRUE(IsDeviceLost(listener_.Await()));
  for (const std::string& name : {running, waiting}) {
    EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED) << "no job fails for it";
  }
  EXPECT_EQ(Get(running).attempt(), 1);
  EXPECT_THAT(Get(running).lost_attempts(), SizeIs(1));
  EXPECT_THAT(engine_->Generated(), SizeIs(1)) << "the other job did not begin";
  Restart();
  for (const std::string& name : {running, waiting}) {
    RunToEnd(name);
    EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  }
  EXPECT_EQ(Get(running).attempt(), 2);
  EXPECT_EQ(Get(waiting).attempt(), 1);
}

TEST_F(DeviceLossTest, AJobThatLosesTheDeviceEachTimeEnds) {
  options_.max_attempts = 2;
  std::string name;
  for (int attempt = 1; attempt <= options_.max_attempts; ++attempt) {
    LossListener loss;
    options_.listeners = {&loss};
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    engine_->LoseDeviceAt("T5_Encoding");
    Open();
    if (name.empty()) name = Create();
    EXPECT_TRUE(IsDeviceLost(loss.Await()));
    Close();
  }
  options_.listeners.clear();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  Open();
  EXPECT_EQ(Get(name).state(), JOB_STATE_FAILED);
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(DeviceLossTest, CallersReadOnAndNewJobsAreRefused) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  engine_->LoseDeviceAt("T5_Encoding");
  const std::string lost = Create();
  EXPECT_TRUE(IsDeviceLost(listener_.Await()));
  EXPECT_EQ(Get(done).state(), JOB_STATE_COMPLETED);
  EXPECT_TRUE(service_->Report(done).ok());
  EXPECT_TRUE(service_->OpenArtifact(Get(done).artifacts(0).name(), 0).ok());
  EXPECT_EQ(calls().List({})->jobs_size(), 2);
  const absl::Status refused = calls().Create(Request(), false).status();
  EXPECT_TRUE(IsDeviceLost(refused)) << refused;
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
  EXPECT_TRUE(calls().Cancel(lost, "CancelJob").ok());
  EXPECT_EQ(Get(lost).state(), wan::v1::JOB_STATE_CANCELLED);
}

TEST_F(DeviceLossTest, ModelTasksThatWaitAreDropped) {
  Open(/*load=*/false);
  engine_->LoseDeviceAt("Model_Initialization");
  absl::Notification first;
  absl::Notification second;
  service_->model_operations().Load({"m", "synthetic:ti2v-5b"}, [&](const auto& model) {
    EXPECT_TRUE(IsDeviceLost(model.status())) << model.status();
    first.Notify();
  });
  first.WaitForNotification();
  service_->model_operations().Load({"n", "synthetic:ti2v-5b"}, [&](const auto& model) {
    EXPECT_EQ(model.status().code(), absl::StatusCode::kUnavailable);
    second.Notify();
  });
  second.WaitForNotification();
  EXPECT_EQ(engine_->Loaded().size(), 1u);
}

class CanaryTest : public DeviceLossTest {
 protected:
  void OpenWith(const DeviceCanary& canary) {
    Close();
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    engine_->SetCanary(std::optional(canary));
    Open(/*load=*/false);
  }
};

TEST_F(CanaryTest, TheFirstIsKeptAndTheSameIsFine) {
  for (const DeviceCanary& canary : {DeviceCanary{"card A", "1111"},
                                     {"card A", "1111"},
                                     {"card B", "2222"},
                                     {"card A", "1111"}}) {
    OpenWith(canary);
    LoadModel("m");
  }
}

TEST_F(CanaryTest, OtherBitsKeepTheDeviceOut) {
  OpenWith({"card A", "1111"});
  LoadModel("m");
  const std::string name = Create();
  RunToEnd(name);
  OpenWith({"card A", "2222"});
  const absl::Status loss = listener_.Await();
  EXPECT_TRUE(IsDeviceLost(loss));
  EXPECT_EQ(listener_.cause(), DeviceLoss::kCanary);
  EXPECT_THAT(std::string(loss.message()), AllOf(HasSubstr("1111"), HasSubstr("2222")));
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  absl::Notification done;
  service_->model_operations().Load({"m", "synthetic:ti2v-5b"}, [&](const auto& model) {
    EXPECT_FALSE(model.ok());
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(engine_->Loads(), 0) << "no model is loaded on it";
}

TEST_F(CanaryTest, ADeviceThatCannotRunItIsLost) {
  engine_->SetCanary(DeviceLostError("an illegal memory access was encountered"));
  Open(/*load=*/false);
  EXPECT_TRUE(IsDeviceLost(listener_.Await()));
}

TEST_F(CanaryTest, AnUnreadableRecordDoesNotKeepTheServerDown) {
  fs::create_directories(folder_.path() / "data" / "device_canaries");  // a folder in its place
  OpenWith({"card A", "1111"});
  LoadModel("m");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

}  // namespace
}  // namespace wan::server
