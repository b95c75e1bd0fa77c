// Jobs whose files are also kept in an object store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/conversion/errors.h"
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

  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    EXPECT_TRUE(objects_
                    .List("",
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

  TempFolder store_folder_;
  MoodyObjects objects_{store_folder_.path() / "objects"};
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

}  // namespace
}  // namespace wan::server
