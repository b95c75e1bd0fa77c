#include "server/store/job_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/store/artifact_store.h"
#include "server/store/savepoint_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/moody_objects.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kVideo[] = "jobs/a/artifacts/video.mp4";
constexpr OutputKind kKinds[] = {OutputKind::kMp4, OutputKind::kLatents};

class JobObjectsTest : public testing::Test {
 protected:
  absl::Status Publish(int attempt, const std::string& text, const std::stop_token& stop = {}) {
    const auto outputs = artifacts_.Stage("jobs/a", attempt, kKinds);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    for (const OutputFile& output : *outputs) std::ofstream(output.path) << text;
    return artifacts_.Publish("jobs/a", attempt, *outputs, stop).status();
  }
  std::string Read(int attempt, uint64_t offset, size_t piece) {
    auto reader = artifacts_.OpenForReading(kVideo, attempt, offset);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::string whole;
    while (reader.ok()) {
      EXPECT_EQ(reader->offset(), offset + whole.size());
      const auto part = reader->Read(piece);
      EXPECT_TRUE(part.ok()) << part.status();
      EXPECT_LE(part->size(), piece);
      if (!part.ok() || part->empty()) break;
      whole += *part;
    }
    return whole;
  }
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    EXPECT_TRUE(store_
                    .List("",
                          [&](const ObjectFacts& object) {
                            keys.push_back(object.key);
                            return true;
                          },
                          {})
                    .ok());
    return keys;
  }
  std::vector<std::string> problems() {
    absl::MutexLock lock(&mutex_);
    return problems_;
  }

  TempFolder folder_;
  const fs::path root_ = folder_.path() / "data";
  fakes::FakeClock clock_;
  absl::Mutex mutex_;
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
  TempFolder store_folder_;
  MoodyObjects store_{store_folder_.path()};
  JobObjects objects_{store_, clock_, [this](const absl::Status& problem) {
                        absl::MutexLock lock(&mutex_);
                        problems_.emplace_back(problem.message());
                      }};
  ArtifactStore artifacts_{root_, &objects_};
  SavepointStore savepoints_{root_, &objects_};
};

TEST_F(JobObjectsTest, PublishedFilesAreInBothPlaces) {
  ASSERT_TRUE(Publish(2, "0123456789").ok());
  EXPECT_THAT(Keys(), ElementsAre("artifacts/a/2/latents.safetensors", "artifacts/a/2/video.mp4"));
  EXPECT_EQ(Read(2, 0, 100), "0123456789");
  fs::remove_all(root_ / "artifacts");
  EXPECT_EQ(Read(2, 0, 100), "0123456789");
  EXPECT_EQ(Read(2, 0, 3), "0123456789");
  EXPECT_EQ(Read(2, 4, 4), "456789");
  EXPECT_EQ(Read(2, 10, 4), "");
  EXPECT_TRUE(absl::IsOutOfRange(artifacts_.OpenForReading(kVideo, 2, 11).status()));
  EXPECT_EQ(ReasonOf(artifacts_.OpenForReading(kVideo, 1, 0).status()), kReasonArtifactNotFound);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(JobObjectsTest, ReadersOfAnObjectAreInUse) {
  ASSERT_TRUE(Publish(1, "0123456789").ok());
  fs::remove_all(root_ / "artifacts");
  std::optional<absl::StatusOr<ArtifactReader>> reader = artifacts_.OpenForReading(kVideo, 1, 0);
  EXPECT_TRUE(artifacts_.InUse("jobs/a"));
  reader.reset();
  EXPECT_FALSE(artifacts_.InUse("jobs/a"));
}

TEST_F(JobObjectsTest, PublishingWaitsForAStoreThatIsAway) {
  store_.SetAway(true);
  auto published = std::async(std::launch::async, [&] { return Publish(1, "x"); });
  for (int i = 0; i < 5; ++i) {
    clock_.AwaitWaiters(1);
    EXPECT_FALSE(fs::exists(root_ / "artifacts" / "a"));
    clock_.Advance(absl::Seconds(40));
  }
  store_.SetAway(false);
  while (published.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    clock_.Advance(absl::Seconds(40));
  }
  EXPECT_TRUE(published.get().ok());
  EXPECT_THAT(Keys(), SizeIs(2));
  // The same problem is told once.
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("jobs/a waits to be published")));
}

// Only a person can say whether an error of the store passes, so no job fails with it.
TEST_F(JobObjectsTest, PublishingWaitsWhateverTheStoreSays) {
  const fs::path loop = store_folder_.path() / "artifacts";
  fs::create_symlink(loop, loop);
  auto published = std::async(std::launch::async, [&] { return Publish(1, "x"); });
  clock_.AwaitWaiters(1);
  fs::remove(loop);
  while (published.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    clock_.Advance(absl::Seconds(40));
  }
  EXPECT_TRUE(published.get().ok());
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("jobs/a waits to be published")));
}

// If the publication waited, the problem that it tells would stop it.
TEST_F(JobObjectsTest, AFileThatCannotBeReadEndsThePublication) {
  std::stop_source stop;
  JobObjects objects(store_, clock_, [&](const absl::Status&) { stop.request_stop(); });
  const fs::path missing[] = {folder_.path() / "video.mp4"};
  const absl::Status status = objects.Publish("jobs/a", 1, missing, stop.get_token());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(missing[0].string()));
}

// Reading a large file after each try would keep the device group's thread busy.
TEST_F(JobObjectsTest, AFileIsNotReadWhileTheStoreIsAway) {
  store_.SetAway(true);
  std::stop_source stop;
  JobObjects objects(store_, clock_, [&](const absl::Status&) { stop.request_stop(); });
  const fs::path missing[] = {folder_.path() / "video.mp4"};
  const absl::Status status = objects.Publish("jobs/a", 1, missing, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(status))
      << "only who looks at the file sees that it is missing: " << status;
}

TEST_F(JobObjectsTest, ReadsEndWhenTheServerStops) {
  ASSERT_TRUE(Publish(1, "x").ok());
  fs::remove_all(root_ / "artifacts");
  store_.SetAway(true);
  store_.StopReads();
  const absl::Status status = artifacts_.OpenForReading(kVideo, 1, 0).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(JobObjectsTest, AStopEndsTheWaitAndLeavesNothing) {
  store_.SetAway(true);
  std::stop_source stop;
  auto published =
      std::async(std::launch::async, [&] { return Publish(1, "x", stop.get_token()); });
  clock_.AwaitWaiters(1);
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(published.get()));
  EXPECT_FALSE(fs::exists(root_ / "artifacts" / "a"));
}

TEST_F(JobObjectsTest, CallersAreNotToldWhereTheStoreIs) {
  ASSERT_TRUE(Publish(1, "x").ok());
  fs::remove_all(root_ / "artifacts");
  store_.SetAway(true);
  const absl::Status status = artifacts_.OpenForReading(kVideo, 1, 0).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(RetryDelayOf(status).has_value());
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret.host")));
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("secret.host")));
}

TEST_F(JobObjectsTest, RemovalsWaitForAStoreThatIsAway) {
  ASSERT_TRUE(Publish(1, "x").ok());
  store_.SetAway(true);
  EXPECT_TRUE(artifacts_.Remove("jobs/a").ok());
  EXPECT_FALSE(fs::exists(root_ / "artifacts" / "a"));
  clock_.AwaitWaiters(1);
  store_.SetAway(false);
  EXPECT_THAT(Keys(), SizeIs(2));
  clock_.Advance(absl::Minutes(1));
  objects_.AwaitRemovals();
  EXPECT_THAT(Keys(), IsEmpty());
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("until it takes removals")));
}

TEST_F(JobObjectsTest, OneFileOrOneAttemptIsRemoved) {
  ASSERT_TRUE(Publish(1, "one").ok());
  ASSERT_TRUE(Publish(12, "two").ok());
  ASSERT_TRUE(artifacts_.RemoveAttempt("jobs/a", 1).ok());
  ASSERT_TRUE(artifacts_.RemoveFile("jobs/a", "latents.safetensors").ok());
  objects_.AwaitRemovals();
  EXPECT_THAT(Keys(), ElementsAre("artifacts/a/12/video.mp4"));
}

TEST_F(JobObjectsTest, AnUnfinishedFileGoesWithItsAttempt) {
  ASSERT_TRUE(store_.Put("artifacts/b/1/video.mp4", "x", {}).ok());
  const fs::path stray = store_folder_.path() / "artifacts" / "a" / "1" / "video.mp4.new";
  fs::create_directories(stray.parent_path());
  std::ofstream(stray) << "x";
  ASSERT_TRUE(artifacts_.RemoveAttempt("jobs/a", 1).ok());
  objects_.AwaitRemovals();
  EXPECT_FALSE(fs::exists(store_folder_.path() / "artifacts" / "a"));
  EXPECT_THAT(Keys(), ElementsAre("artifacts/b/1/video.mp4"));
}

TEST_F(JobObjectsTest, TheSweepAsksOnlyForWhatIsThere) {
  for (const char* const key : {"artifacts/a/1/receipt.json", "artifacts/a/1/video.mp4",
                                "artifacts/a/2/receipt.json", "artifacts/b/1/video.mp4"}) {
    ASSERT_TRUE(store_.Put(key, "x", {}).ok());
  }
  const int before = store_.listings();
  std::vector<std::string> asked;
  ASSERT_TRUE(artifacts_
                  .RemoveLeftovers([&](const std::string& job) {
                    asked.push_back(job);
                    return ArtifactStore::Kept{.attempt = job == "jobs/a" ? 2 : 1,
                                               .but = {"latents.safetensors", "video.mp4"}};
                  })
                  .ok());
  objects_.AwaitRemovals();
  EXPECT_THAT(asked, ElementsAre("jobs/a", "jobs/b"));
  EXPECT_THAT(store_.prefixes(), ElementsAre("artifacts/a/1/"));
  EXPECT_EQ(store_.listings() - before, 2) << "the sweep, and the video of b";
  EXPECT_THAT(Keys(), ElementsAre("artifacts/a/2/receipt.json"));
}

TEST_F(JobObjectsTest, TheSweepFindsWhatNobodyNeeds) {
  for (const char* const key :
       {"artifacts/a/1/video.mp4", "artifacts/a/2/video.mp4", "artifacts/a/2/latents.safetensors",
        "artifacts/gone/1/video.mp4", "artifacts/other/1/video.mp4", "artifacts/not-ours",
        "savepoints/ended", "savepoints/runs"}) {
    ASSERT_TRUE(store_.Put(key, "x", {}).ok());
  }
  ASSERT_TRUE(artifacts_
                  .RemoveLeftovers([](const std::string& job) {
                    if (job == "jobs/gone") return ArtifactStore::Kept{.any = false};
                    if (job == "jobs/other") return ArtifactStore::Kept{};
                    return ArtifactStore::Kept{.attempt = 2, .but = {"latents.safetensors"}};
                  })
                  .ok());
  ASSERT_TRUE(
      savepoints_.RemoveLeftObjects([](const std::string& job) { return job == "jobs/ended"; })
          .ok());
  objects_.AwaitRemovals();
  EXPECT_THAT(Keys(), ElementsAre("artifacts/a/2/video.mp4", "artifacts/not-ours",
                                  "artifacts/other/1/video.mp4", "savepoints/runs"));
}

TEST_F(JobObjectsTest, ASavepointThatTheDiskLostIsFetched) {
  Savepoint savepoint;
  savepoint.steps_done = 7;
  savepoint.bytes = "state";
  ASSERT_TRUE(savepoints_.Write("jobs/a", SavepointOrigin{.request = "id"}, savepoint).ok());
  ASSERT_TRUE(savepoints_.Upload("jobs/a", {}).ok());
  fs::remove_all(root_ / "savepoints");
  EXPECT_TRUE(absl::IsNotFound(savepoints_.Read("jobs/a").status()));
  ASSERT_TRUE(savepoints_.Fetch("jobs/a", {}).ok());
  const auto read = savepoints_.Read("jobs/a");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->origin.request, "id");
  EXPECT_EQ(read->savepoint.steps_done, 7);
  EXPECT_EQ(read->savepoint.bytes, "state");
  EXPECT_EQ(savepoints_.StepsKept("jobs/a"), 7);
  savepoints_.Remove("jobs/a");
  objects_.AwaitRemovals();
  EXPECT_THAT(Keys(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(savepoints_.Read("jobs/a").status()));
  EXPECT_TRUE(absl::IsNotFound(savepoints_.Fetch("jobs/a", {})));
}

TEST_F(JobObjectsTest, ASavepointIsAwaitedWhileTheStoreIsAway) {
  ASSERT_TRUE(savepoints_.Write("jobs/a", SavepointOrigin{}, {7, "state"}).ok());
  ASSERT_TRUE(savepoints_.Upload("jobs/a", {}).ok());
  fs::remove_all(root_ / "savepoints");
  store_.SetAway(true);
  std::stop_source stop;
  auto fetched =
      std::async(std::launch::async, [&] { return savepoints_.Fetch("jobs/a", stop.get_token()); });
  clock_.AwaitWaiters(1);
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(fetched.get()));
  fetched = std::async(std::launch::async, [&] { return savepoints_.Fetch("jobs/a", {}); });
  clock_.AwaitWaiters(1);
  store_.SetAway(false);
  while (fetched.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    clock_.Advance(absl::Seconds(40));
  }
  EXPECT_TRUE(fetched.get().ok());
  EXPECT_EQ(savepoints_.StepsKept("jobs/a"), 7);
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("jobs/a waits to go on"), HasSubstr("jobs/a waits to go on")));
}

}  // namespace
}  // namespace wan::server
