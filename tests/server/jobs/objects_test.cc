// Jobs whose files are also kept in an object store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/conversion/errors.h"
#include "server/jobs/job_savepoints.h"
#include "server/store/file_digests.h"
#include "server/store/job_objects.h"
#include "server/store/savepoint_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_engine.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/moody_objects.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_RUNNING;

// Waits for a problem with a text.
class Problems final : public StateListener {
 public:
  void OnProblem(const absl::Status& problem) override {
    absl::MutexLock lock(&mutex_);
    all_ += std::string(problem.message()) + "\n";
  }
  void Await(const std::string& text) {
    absl::MutexLock lock(&mutex_);
    const auto told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return all_.find(text) != std::string::npos;
    };
    mutex_.Await(absl::Condition(&told));
  }

 private:
  absl::Mutex mutex_;
  std::string all_ ABSL_GUARDED_BY(mutex_);
};

class ObjectsTest : public ServiceTest {
 protected:
  ObjectsTest() {
    options_.objects = &objects_;
    options_.listeners = {&problems_};
  }
  ~ObjectsTest() override { Close(); }

  std::vector<std::string> Keys(const std::string& prefix = "") {
    std::vector<std::string> keys;
    EXPECT_TRUE(objects_
                    .List(prefix,
                          [&](const ObjectFacts& object) {
                            keys.push_back(object.key);
                            return true;
                          },
                          {})
                    .ok());
    return keys;
  }
  std::string Download(const std::string& job) {
    auto opened = service_->OpenArtifact(Get(job).artifacts(0).name(), 0);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened->reader.Read(1 << 20) : "";
  }

  // Waits until the store has the savepoint after so many steps.
  void AwaitSavepointInStore(const std::string& job, int steps) {
    const std::string key = "savepoints/" + job.substr(job.find('/') + 1);
    const std::string head = absl::StrCat(" savepoint2 ", steps, "\n");
    for (;;) {
      const auto bytes = objects_.Read(key, 1 << 20, {});
      if (bytes.ok() && bytes->find(head) != std::string::npos) return;
      std::this_thread::yield();
    }
  }

  TempFolder store_folder_;
  MoodyObjects objects_{store_folder_.path()};
  Problems problems_;
};

TEST_F(ObjectsTest, ADownloadNeedsNoLocalFileAlsoAfterARestart) {
  Open();
  const std::string job = Create();
  RunToEnd(job);
  ASSERT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
  const std::string bytes = Download(job);
  EXPECT_THAT(bytes, Not(IsEmpty()));
  ASSERT_GT(fs::remove_all(options_.data_dir / "artifacts"), 0U);
  EXPECT_EQ(Download(job), bytes);
  Close();
  Open();
  EXPECT_EQ(Download(job), bytes);
}

TEST_F(ObjectsTest, AJobCompletesOnceTheStoreHasItsFiles) {
  objects_.SetAway(true);
  Open();
  const std::string job = Create();
  problems_.Await(job + " waits to be published");
  EXPECT_EQ(Get(job).state(), JOB_STATE_RUNNING);
  objects_.SetAway(false);
  while (Get(job).state() == JOB_STATE_RUNNING) {
    clock_.Advance(absl::Seconds(2));
    std::this_thread::yield();
  }
  EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(job).attempt(), 1);
  EXPECT_THAT(Keys(), testing::Each(HasSubstr("/1/")));
}

TEST_F(ObjectsTest, AJobThatWaitsForTheStoreCanBeCancelled) {
  objects_.SetAway(true);
  Open();
  const std::string job = Create();
  problems_.Await(job + " waits to be published");
  ASSERT_TRUE(calls().Cancel(job, "").ok());
  RunToEnd(job);
  EXPECT_EQ(Get(job).state(), JOB_STATE_CANCELLED);
}

TEST_F(ObjectsTest, AKillWhileAJobWaitsLosesNothing) {
  objects_.SetAway(true);
  Open();
  const std::string job = Create();
  problems_.Await(job + " waits to be published");
  const TempFolder copy;
  CopyFolder(options_.data_dir, copy.path() / "data");
  Close();
  objects_.SetAway(false);
  OpenIn(copy.path() / "data");
  RunToEnd(job);
  EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
  EXPECT_THAT(Download(job), Not(IsEmpty()));
}

TEST_F(ObjectsTest, ADeletedJobLeavesNoObject) {
  Open();
  const std::string job = Create();
  RunToEnd(job);
  ASSERT_THAT(Keys(), Not(IsEmpty()));
  ASSERT_TRUE(calls().Delete(job).ok());
  while (!Keys().empty()) std::this_thread::yield();
}

TEST_F(ObjectsTest, ARestartAsksTheStoreOnlyForAttemptsThatBegan) {
  Open();
  engine_->Hold("Step_2_Inference");
  const std::string runs = Create();
  engine_->AwaitHeld("Step_2_Inference");
  const std::string waits = Create();
  service_->AwaitWrites();
  const TempFolder copy;
  CopyFolder(options_.data_dir, copy.path() / "data");
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(copy.path() / "data");
  RunToEnd(waits);
  ASSERT_TRUE(calls().Delete(waits).ok());
  while (!Keys("artifacts/" + waits.substr(5)).empty()) std::this_thread::yield();
  // Removals are carried out in their order.
  EXPECT_THAT(objects_.prefixes(), testing::Contains("artifacts/" + runs.substr(5) + "/1/"));
  EXPECT_THAT(objects_.prefixes(), Not(testing::Contains(testing::EndsWith("/0/"))));
}

TEST_F(ObjectsTest, AJobWaitsForTheSavepointThatOnlyTheStoreHas) {
  options_.savepoint_interval = absl::ZeroDuration();
  Open();
  engine_->Hold("Step_2_Inference");
  wan::v1::GenerationRequest request = Request();
  request.set_resume(wan::v1::RESUME_REQUIRE);
  const std::string job = Create(request);
  engine_->AwaitHeld("Step_2_Inference");
  AwaitSavepointInStore(job, 2);
  service_->AwaitWrites();
  const TempFolder copy;
  CopyFolder(options_.data_dir, copy.path() / "data");
  ASSERT_GT(fs::remove_all(copy.path() / "data" / "savepoints"), 0U);
  objects_.SetAway(true);
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(copy.path() / "data");
  problems_.Await(job + " waits to go on");
  EXPECT_EQ(Get(job).state(), JOB_STATE_RUNNING);
  objects_.SetAway(false);
  while (Get(job).state() == JOB_STATE_RUNNING) {
    clock_.Advance(absl::Seconds(2));
    std::this_thread::yield();
  }
  EXPECT_THAT(Brief(RunToEnd(job)),
              testing::AllOf(testing::Contains("resumed 2"), testing::Contains("completed")));
}

// A store whose uploads stand until they are stopped.
class StandingObjects final : public ObjectStore {
 public:
  std::string Name() const override { return "standing"; }
  absl::Status Put(const std::string& /*key*/, std::string_view /*bytes*/,
                   const ObjectCall& /*call*/) override {
    return absl::OkStatus();
  }
  absl::Status PutFile(const std::string& /*key*/, const fs::path& /*file*/,
                       const ObjectCall& call) override {
    bool stopped = false;
    const std::stop_callback on_stop(call.stop, [&] {
      absl::MutexLock lock(&mutex_);
      stopped = true;
    });
    absl::MutexLock lock(&mutex_);
    ++uploads_;
    mutex_.Await(absl::Condition(&stopped));
    return absl::CancelledError("stopped");
  }
  absl::Status Get(const std::string& /*key*/, const ObjectRange& /*range*/, const Sink& /*sink*/,
                   const ObjectCall& /*call*/) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<ObjectFacts> Stat(const std::string& /*key*/,
                                   const ObjectCall& /*call*/) override {
    return absl::NotFoundError("none");
  }
  absl::Status List(const std::string& /*prefix*/,
                    const std::function<bool(const ObjectFacts&)>& /*visit*/,
                    const ObjectCall& /*call*/) override {
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& /*key*/, const ObjectCall& /*call*/) override {
    return absl::OkStatus();
  }

  void AwaitUploads(int uploads) {
    absl::MutexLock lock(&mutex_);
    const auto begun = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return uploads_ == uploads; };
    mutex_.Await(absl::Condition(&begun));
  }

 private:
  absl::Mutex mutex_;
  int uploads_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Remembers until when the latest wait lasts.
class WaitClock final : public Clock {
 public:
  explicit WaitClock(Clock& clock) : clock_(clock) {}
  absl::Time Now() const override { return clock_.Now(); }
  int64_t MonotonicNanos() const override { return clock_.MonotonicNanos(); }
  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) override {
    deadline_ = deadline;
    return clock_.AwaitUntil(mutex, condition, deadline);
  }
  Clock& Steady() override { return *this; }

  // Call it once the other thread waits.
  absl::Time deadline() const { return deadline_; }

 private:
  Clock& clock_;
  absl::Time deadline_;
};

class SavepointUploadTest : public testing::Test {
 protected:
  void Begin(bool will_run_again) {
    savepoints_.emplace(JobSavepoints::Parts{
        .store = store_,
        .clock = waits_,
        .digests = digests_,
        .job = "jobs/a1",
        .origin = {},
        .files = {},
        .stop = {},
        .interval = absl::ZeroDuration(),
        .will_run_again = [will_run_again] { return will_run_again; },
        .on_written = [](int, double) {},
        .on_problem = [](const absl::Status& problem) { ADD_FAILURE() << problem; }});
  }

  TempFolder folder_;
  fakes::FakeClock clock_;
  WaitClock waits_{clock_};
  StandingObjects standing_;
  JobObjects objects_{standing_, clock_,
                      [](const absl::Status& problem) { ADD_FAILURE() << problem; }};
  SavepointStore store_{folder_.path(), &objects_};
  FileDigests digests_{folder_.path() / "digests", [](const absl::Status&) {}};
  std::optional<JobSavepoints> savepoints_;
};

TEST_F(SavepointUploadTest, ANewerSavepointAndTheEndOfTheJobStopAnUpload) {
  Begin(/*will_run_again=*/false);
  savepoints_->Keep({1, "one"});
  standing_.AwaitUploads(1);
  savepoints_->Keep({2, "two"});
  standing_.AwaitUploads(2);
  savepoints_.reset();
  EXPECT_EQ(store_.StepsKept("jobs/a1"), 2);
}

TEST_F(SavepointUploadTest, AJobThatRunsAgainGivesTheLastUploadFiveSeconds) {
  Begin(/*will_run_again=*/true);
  savepoints_->Keep({1, "one"});
  standing_.AwaitUploads(1);
  auto ended = std::async(std::launch::async, [&] { savepoints_.reset(); });
  clock_.AwaitWaiters(1);
  EXPECT_EQ(waits_.deadline() - clock_.Now(), absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  ended.get();
}

}  // namespace
}  // namespace wan::server
