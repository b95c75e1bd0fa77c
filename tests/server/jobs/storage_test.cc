// A data folder that is full, gone, or comes back: what is there is served, nothing new is taken,
// and no job fails of it.

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/storage_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/jobs/storage_watch.h"
#include "server/store/ballast.h"
#include "tests/server/jobs/full_disk.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;

class StorageListener final : public StateListener {
 public:
  void OnStorage(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    writable_.push_back(status.ok());
  }
  void OnDiskRoom(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    room_.push_back(status.ok());
  }
  // Waits until the room was told of so often; what was told.
  std::vector<bool> AwaitRoom(size_t times) {
    absl::MutexLock lock(&mutex_);
    const auto told = [&]() { return room_.size() >= times; };
    mutex_.Await(absl::Condition(&told));
    return room_;
  }
  void OnJobRequeued(const wan::v1::Job& /*job*/, RequeueCause cause) override {
    if (cause != RequeueCause::kStorage) return;
    if (on_requeued_ != nullptr) on_requeued_();
    absl::MutexLock lock(&mutex_);
    ++requeued_;
  }
  // Is called before the next attempt can begin.
  void OnRequeued(std::function<void()> call) { on_requeued_ = std::move(call); }
  // Waits until jobs have gone back to the queue so often because of the storage.
  void AwaitRequeued(int times) {
    absl::MutexLock lock(&mutex_);
    const auto told = [&]() { return requeued_ >= times; };
    mutex_.Await(absl::Condition(&told));
  }
  // Waits until the storage was told of so often; what was told.
  std::vector<bool> Await(size_t times) {
    absl::MutexLock lock(&mutex_);
    const auto told = [&]() { return writable_.size() >= times; };
    mutex_.Await(absl::Condition(&told));
    return writable_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<bool> writable_;
  std::vector<bool> room_;
  int requeued_ = 0;
  std::function<void()> on_requeued_;
};

class StorageTest : public ServiceTest {
 protected:
  StorageTest() { options_.listeners = {&listener_}; }

  void ExpectRefused() {
    const absl::Status status = calls().Create(Request(), false).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
    EXPECT_TRUE(RetryDelayOf(status).has_value());
    EXPECT_THAT(std::string(status.message()), HasSubstr(options_.data_dir.string()));
    EXPECT_FALSE(service_->Stats().storage_writable);
  }

  // Lets the watch's seconds pass until it has told so often.
  void AwaitTold(size_t times) {
    std::thread waiter([&] {
      listener_.Await(times);
      told_ = true;
    });
    while (!told_) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
    waiter.join();
    told_ = false;
  }

  StorageListener listener_;
  std::atomic<bool> told_ = false;
};

TEST_F(StorageTest, AFullDiskWhileItRuns) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  engine_->Hold("Step_1_Inference");
  const std::string running = Create();
  engine_->AwaitHeld("Step_1_Inference");
  const std::string waiting = Create();
  {
    const FullDisk full;
    ExpectRefused();
    ExpectRefused();
    engine_->Release("Step_1_Inference");
    listener_.AwaitRequeued(1);
    EXPECT_EQ(Get(running).state(), JOB_STATE_QUEUED);
    EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
    EXPECT_TRUE(service_->OpenArtifact(done + "/artifacts/video.mp4", 0).ok());
    EXPECT_THAT(calls().List({})->jobs(), SizeIs(3));
    EXPECT_EQ(listener_.Await(1), std::vector<bool>{false});
  }
  AwaitTold(2);
  EXPECT_EQ(Brief(RunToEnd(running).back()), "completed");
  EXPECT_THAT(Brief(RunToEnd(running)),
              Contains(StartsWith("requeued the data folder takes no writes: writing ")));
  EXPECT_EQ(Get(running).lost_attempts_size(), 0);
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
  EXPECT_TRUE(service_->Stats().storage_writable);
}

// Whoever fills the disk of a server that has just begun to serve must not get the room in which
// jobs are deleted.
TEST_F(StorageTest, RoomForDeletionsIsKeptFromTheStart) {
  Open();
  std::error_code error;
  EXPECT_EQ(std::filesystem::file_size(options_.data_dir / "ballast", error), Ballast::kBytes)
      << error.message();
}

TEST_F(StorageTest, AFullDiskAtStart) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  engine_->Hold("T5_Encoding");
  const std::string interrupted = Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string waiting = Create();
  service_->AwaitWrites();
  const fs::path copy = folder_.path() / "killed";
  CopyFolder(options_.data_dir, copy);
  Close();
  engine_->Release("T5_Encoding");
  {
    const FullDisk full;
    OpenIn(copy);
    EXPECT_TRUE(service_->OpenArtifact(done + "/artifacts/video.mp4", 0).ok());
    EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
    EXPECT_EQ(Get(interrupted).state(), JOB_STATE_QUEUED);
    EXPECT_THAT(calls().List({})->jobs(), SizeIs(3));
    ExpectRefused();
  }
  AwaitTold(2);
  EXPECT_EQ(Brief(RunToEnd(interrupted).back()), "completed");
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
}

TEST_F(StorageTest, AFolderThatIsGoneAtStartAndComesBackWithItsJobs) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string waiting = Create();
  service_->AwaitWrites();
  const fs::path copy = folder_.path() / "copy";
  CopyFolder(options_.data_dir, copy);
  Close();
  engine_->Release("T5_Encoding");
  // A volume that is not mounted: nothing can be made in its place.
  const fs::path mount = folder_.path() / "mount";
  fs::create_symlink(folder_.path() / "no_volume", mount);
  OpenIn(mount / "data");
  EXPECT_EQ(ReasonOf(service_->Get(done).status()), kReasonStorageUnavailable);
  EXPECT_EQ(ReasonOf(calls().List({}).status()), kReasonStorageUnavailable);
  ExpectRefused();
  // It comes back whole, at one moment: the server looks at it all the time.
  const fs::path volume = folder_.path() / "volume";
  fs::create_directory(volume);
  CopyFolder(copy, volume / "data");
  fs::create_symlink(volume, folder_.path() / "mounted");
  fs::rename(folder_.path() / "mounted", mount);
  AwaitTold(2);
  EXPECT_EQ(Get(done).state(), JOB_STATE_COMPLETED);
  EXPECT_TRUE(service_->OpenArtifact(done + "/artifacts/video.mp4", 0).ok());
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(StorageTest, AFolderThatGoesWhileItRunsTakesNothingThatWouldBeLost) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  const fs::path away = folder_.path() / "away";
  fs::rename(options_.data_dir, away);
  ExpectRefused();
  EXPECT_EQ(Get(done).state(), JOB_STATE_COMPLETED);
  std::error_code error;
  for (int attempt = 0; attempt < 100; ++attempt) {
    fs::remove_all(options_.data_dir);  // what the probes made in its place
    fs::rename(away, options_.data_dir, error);
    if (!error) break;
  }
  ASSERT_FALSE(error) << error.message();
  AwaitTold(2);
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

// The disk as the file system tells of it.
class DiskRoomTest : public StorageTest {
 protected:
  DiskRoomTest() {
    options_.disk_reserve_bytes = 1000 << 20;
    options_.free_bytes = [this]() -> std::optional<uint64_t> { return free_.load(); };
  }
  ~DiskRoomTest() override { Close(); }

  // Lets seconds pass until the room was told of so often.
  std::vector<bool> AwaitRoom(size_t times) {
    std::atomic<bool> told = false;
    std::thread waiter([&] {
      listener_.AwaitRoom(times);
      told = true;
    });
    while (!told) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
    waiter.join();
    return listener_.AwaitRoom(times);
  }

  std::atomic<uint64_t> free_ = uint64_t{2000} << 20;
};

TEST_F(DiskRoomTest, IsToldWhenItIsShortAndWhenItIsThereAgain) {
  Open();
  free_ = uint64_t{900} << 20;
  EXPECT_THAT(AwaitRoom(1), testing::ElementsAre(false));
  EXPECT_EQ(ReasonOf(calls().Create(Request(), false).status()), kReasonDiskReserve);
  EXPECT_TRUE(service_->Stats().storage_writable) << "it takes writes, only no new jobs";
  free_ = uint64_t{1100} << 20;
  EXPECT_THAT(AwaitRoom(2), testing::ElementsAre(false, true));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(DiskRoomTest, IsLookedAtAtTheStart) {
  free_ = 0;
  Open();
  EXPECT_THAT(listener_.AwaitRoom(1), testing::ElementsAre(false));  // no time has passed
  service_->SetLimits({}, 0);
  EXPECT_THAT(AwaitRoom(2), testing::ElementsAre(false, true)) << "a new reserve counts";
}

// The probe after the failure finds room, so only the error tells that the disk was full.
TEST_F(StorageTest, ADiskThatWasFullForAMomentFailsNoJob) {
  Open();
  engine_->FailAt(
      "Video_Encoding",
      WithStorageReason(absl::ResourceExhaustedError("cannot write video.mp4"), ENOSPC));
  const std::string job = Create();
  AwaitTold(2);
  EXPECT_EQ(Brief(RunToEnd(job).back()), "completed");
  EXPECT_EQ(Get(job).attempt(), 2);
  EXPECT_EQ(Get(job).lost_attempts_size(), 0);
}

TEST_F(StorageTest, AJobWhoseFilesTheDiskNeverTakesFails) {
  Open();
  const auto refuse = [&] {
    engine_->FailAt("Video_Encoding",
                    WithStorageReason(absl::ResourceExhaustedError("over the quota"), EDQUOT));
  };
  refuse();
  listener_.OnRequeued(refuse);
  const std::string job = Create();
  while (Get(job).state() != wan::v1::JOB_STATE_FAILED) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(Brief(RunToEnd(job).back()), "failed over the quota");
  EXPECT_EQ(Get(job).attempt(), 4);
}

TEST_F(StorageTest, AFailureOfTheEngineIsNoneOfTheStorage) {
  Open();
  engine_->FailAt("T5_Encoding", absl::ResourceExhaustedError("GPU memory"));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "failed GPU memory");
  EXPECT_TRUE(service_->Stats().storage_writable);
}

}  // namespace
}  // namespace wan::server
