// Removal of ended jobs: by callers and by the retention, and what a kill or a refusing disk in the
// middle of it leaves.

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/retention/disk_reserve.h"
#include "server/store/sqlite_job_store.h"
#include "tests/server/jobs/full_disk.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;

class RetentionListener final : public StateListener {
 public:
  void OnRetention(const RetentionRound& round) override {
    absl::MutexLock lock(&mutex_);
    for (const RetentionRound::Removed& removed : round.removed) jobs_ += removed.jobs;
  }
  // Waits until so many jobs, or their files, were removed.
  void Await(int64_t jobs) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&] { return jobs_ >= jobs; };
    mutex_.Await(absl::Condition(&there));
  }
  int64_t jobs() {
    absl::MutexLock lock(&mutex_);
    return jobs_;
  }

 private:
  absl::Mutex mutex_;
  int64_t jobs_ = 0;
};

class RemovalTest : public ServiceTest {
 protected:
  RemovalTest() { options_.listeners = {&listener_}; }

  fs::path FilesOf(const std::string& job) const {
    return options_.data_dir / "artifacts" / job.substr(5);
  }
  std::string RunOne() {
    const std::string job = Create();
    RunToEnd(job);
    return job;
  }
  // Lets minutes pass until so many jobs, or their files, were removed.
  void AwaitRemoved(int64_t jobs) {
    while (listener_.jobs() < jobs) {
      clock_.Advance(absl::Minutes(1));
      std::this_thread::yield();
    }
  }
  static std::string VideoOf(const std::string& job) { return job + "/artifacts/video.mp4"; }

  RetentionListener listener_;
};

TEST_F(RemovalTest, ADiskThatTakesNoWritesLosesNoFileOfAJobThatStays) {
  Open();
  const std::string job = RunOne();
  {
    const FullDisk full;
    EXPECT_EQ(ReasonOf(calls().Delete(job)), kReasonStorageUnavailable);
    EXPECT_EQ(ReasonOf(calls().DeleteArtifact(VideoOf(job))), kReasonStorageUnavailable);
  }
  EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
  EXPECT_FALSE(Get(job).artifacts(0).has_delete_time());
  EXPECT_TRUE(service_->OpenArtifact(VideoOf(job), 0).ok());
}

// The row is gone, and the files cannot be removed for now: the next round of the retention does
// it, or whoever deletes the job again.
TEST_F(RemovalTest, FilesThatCannotGoNowGoLater) {
  Open();
  const fs::path artifacts = options_.data_dir / "artifacts";
  const fs::path elsewhere = options_.data_dir / "elsewhere";
  for (const bool again : {true, false}) {
    SCOPED_TRACE(again ? "DeleteJob once more" : "a minute later");
    const std::string job = RunOne();
    fs::rename(artifacts, elsewhere);
    fs::create_directory_symlink(artifacts, artifacts);  // a loop, in which nothing can be removed
    EXPECT_TRUE(calls().Delete(job).ok());
    fs::remove(artifacts);
    fs::rename(elsewhere, artifacts);
    EXPECT_EQ(ReasonOf(service_->Get(job).status()), kReasonExpired);
    ASSERT_TRUE(fs::exists(FilesOf(job)));
    if (again) {
      EXPECT_EQ(ReasonOf(calls().Delete(job)), kReasonExpired);
      EXPECT_FALSE(fs::exists(FilesOf(job)));
    }
    while (fs::exists(FilesOf(job))) {
      clock_.Advance(absl::Minutes(1));
      std::this_thread::yield();
    }
  }
}

TEST_F(RemovalTest, AKillBetweenRowAndFilesLeavesNoFiles) {
  Open();
  const std::string removed = RunOne();
  const std::string without_files = RunOne();
  const std::string kept = RunOne();
  Close();
  {
    // What a kill leaves that comes when the rows are on the disk.
    auto store = OpenSqliteJobStore(options_.data_dir / "jobs.db");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(RemoveFrom(**store, removed).ok());
    JobChange change{without_files, (*store)->Get(without_files)->job, {}, std::nullopt};
    change.row->mutable_artifacts(0)->mutable_delete_time()->set_seconds(1);
    ASSERT_TRUE(ApplyTo(**store, std::span(&change, 1)).ok());
  }
  fs::create_directory(options_.data_dir / "artifacts" / "unknown");
  EXPECT_TRUE(fs::exists(FilesOf(removed)));
  Open();  // which does not wait until every job with files was looked at
  while (fs::exists(FilesOf(removed)) || fs::exists(FilesOf(without_files) / "video.mp4")) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(fs::exists(FilesOf(kept) / "video.mp4"));
  EXPECT_TRUE(fs::exists(options_.data_dir / "artifacts" / "unknown"));
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(VideoOf(removed), 0).status()), kReasonExpired);
}

TEST_F(RemovalTest, RetentionRemovesJobsAndTellsWhenTheyGo) {
  options_.retention.completed = *ParseRetentionRule("2h,1");
  Open();
  const std::string first = RunOne();
  const std::string second = RunOne();
  const wan::v1::Job job = Get(second);
  EXPECT_EQ(ToTime(job.expire_time()), ToTime(job.end_time()) + absl::Hours(2));
  EXPECT_TRUE(calls().List({})->jobs(0).has_expire_time());
  Close();
  Open();  // a round begins at once
  listener_.Await(1);
  EXPECT_EQ(ReasonOf(service_->Get(first).status()), kReasonExpired);
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(VideoOf(first), 0).status()), kReasonExpired);
  EXPECT_FALSE(fs::exists(FilesOf(first)));
  EXPECT_EQ(Get(second).state(), JOB_STATE_COMPLETED);
  EXPECT_TRUE(fs::exists(FilesOf(second)));
  Close();
  clock_.Advance(absl::Hours(3));
  Open();
  listener_.Await(2);
  EXPECT_EQ(ReasonOf(service_->Get(second).status()), kReasonExpired);
}

TEST_F(RemovalTest, RetentionRemovesFilesAndNotesThatInTheirJob) {
  options_.retention.artifacts = *ParseRetentionRule("1h");
  Open();
  const std::string job = RunOne();
  EXPECT_FALSE(Get(job).has_expire_time()) << "the job itself stays";
  AwaitRemoved(1);
  EXPECT_TRUE(Get(job).artifacts(0).has_delete_time());
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(VideoOf(job), 0).status()), kReasonExpired);
  EXPECT_FALSE(fs::exists(FilesOf(job) / "video.mp4"));
  EXPECT_TRUE(service_->Report(job).ok());
}

TEST_F(RemovalTest, AFileThatIsReadStaysReadable) {
  options_.retention.completed = *ParseRetentionRule("1");
  Open();
  const std::string first = RunOne();
  auto opened = std::make_optional(service_->OpenArtifact(VideoOf(first), 0));
  ASSERT_TRUE((*opened).ok());
  RunOne();
  const std::string third = RunOne();
  AwaitRemoved(1);
  EXPECT_TRUE(service_->Get(first).ok()) << "somebody reads it";
  EXPECT_THAT(calls().List({})->jobs(), SizeIs(2));
  // Whoever removes a job does not wait for readers.
  ASSERT_TRUE(calls().Delete(first).ok());
  EXPECT_EQ((**opened).reader.Read(3)->size(), 3u);
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(VideoOf(first), 0).status()), kReasonExpired);
  EXPECT_TRUE(service_->Get(third).ok());
}

class DiskReserveServiceTest : public ServiceTest {
 protected:
  DiskReserveServiceTest() {
    options_.free_bytes = [this]() -> std::optional<uint64_t> { return free_.load(); };
  }
  static constexpr char kHeld[] = "T5_Encoding";
  std::atomic<uint64_t> free_ = uint64_t{1} << 40;
};

TEST_F(DiskReserveServiceTest, NewWorkIsRefusedThatWouldTakeTheRoomOfAcceptedJobs) {
  options_.disk_reserve_bytes = 1000;
  Open();
  engine_->Hold(kHeld);
  const std::string first = Create();
  engine_->AwaitHeld(kHeld);
  const uint64_t one = MostOutputBytes(Get(first).request());
  EXPECT_EQ(service_->Stats().disk_reserved_bytes, one + 1000);
  free_ = 1000 + 3 * one - 1;
  const std::string second = Create();
  const absl::Status refused = calls().Create(Request(), false).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(ReasonOf(refused), kReasonDiskReserve);
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
  // A batch has room as a whole or not at all.
  free_ = 1000 + 4 * one - 1;
  wan::v1::SubmitBatchRequest batch;
  for (int i = 0; i < 2; ++i) *batch.add_requests() = Request();
  EXPECT_EQ(ReasonOf(calls().SubmitBatch(batch).status()), kReasonDiskReserve);
  EXPECT_EQ(service_->Stats().disk_reserved_bytes, 2 * one + 1000);
  engine_->Release(kHeld);
  RunToEnd(first);
  RunToEnd(second);
  EXPECT_TRUE(calls().Create(Request(), false).ok()) << "the accepted jobs have their files";
}

TEST_F(DiskReserveServiceTest, JobsOfBeforeTheRestartKeepTheirRoom) {
  Open();
  engine_->Hold(kHeld);
  const std::string first = Create();
  engine_->AwaitHeld(kHeld);
  const uint64_t one = MostOutputBytes(Get(first).request());
  Close();
  OpenIn(options_.data_dir, /*load=*/false);
  EXPECT_EQ(service_->Stats().disk_reserved_bytes, one);
  engine_->Release(kHeld);
}

TEST_F(DiskReserveServiceTest, ARepeatedRequestFindsItsJobOnAFullDisk) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("r");
  const std::string job = Create(request);
  free_ = 0;
  const auto again = calls().Create(request, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job.name(), job);
}

}  // namespace
}  // namespace wan::server
