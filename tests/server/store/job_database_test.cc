// Who waits for the disk and for whom: writers, readers and syncs of the job database.
#include "server/store/job_database.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/store/await.h"
#include "server/store/database_files.h"
#include "server/store/disk_wait.h"
#include "server/store/group_sync.h"
#include "server/store/sqlite_job_store.h"
#include "server/store/sqlite_schema.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_sync.h"
#include "tests/server/store/blocking_writes.h"
#include "tests/server/store/sqlite_job_store_fixture.h"

namespace wan::server {
namespace {

using fakes::FakeSync;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class JobDatabaseTest : public SqliteJobStoreTest {};

TEST_F(JobDatabaseTest, SyncsEveryCommitToAWriteAheadLog) {
  FakeSync sync;
  auto store = OpenSqliteJobStore(file_, nullptr, sync.function());
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(Fill(**store, 2).ok());
  EXPECT_EQ(sync.begun(), 2);
  JobChange change;
  change.job = "jobs/0";
  change.events.emplace_back().set_sequence(2);
  ASSERT_TRUE(ApplyTo(**store, std::span(&change, 1)).ok());
  EXPECT_EQ(sync.begun(), 3);
  EXPECT_TRUE(std::filesystem::exists(file_.string() + "-wal"));
}

// Closing brings the log into the database, which takes two syncs more. A server that was told to
// end has no time for that if a sync takes long; the next start reads the log. What a failed sync
// left in doubt is saved all the same.
TEST_F(JobDatabaseTest, KeepsItsLogWhenItClosesOnASlowDisk) {
  const std::string log = file_.string() + "-wal";
  struct Disk {
    bool slow;
    absl::Status synced;
  };
  for (const auto& [slow, synced] : {Disk{true, absl::OkStatus()}, Disk{false, absl::OkStatus()},
                                     Disk{true, absl::UnavailableError("EIO")}}) {
    fakes::FakeClock clock;
    absl::StatusOr<std::unique_ptr<JobDatabase>> database =
        JobDatabase::Open({.file = file_.string(),
                           .where = "test",
                           .open = [&] { return OpenToWrite(file_.string()); },
                           .prepare = &PrepareDatabase,
                           .open_to_read = [&] { return OpenBesideWriter(file_.string()); },
                           .sync =
                               [&] {
                                 clock.Advance(slow ? absl::Seconds(5) : absl::Milliseconds(5));
                                 return synced;
                               },
                           .clock = clock});
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status written = AwaitDone<absl::Status>([&](JobDatabase::Done done) {
      const std::string statement =
          absl::StrCat("CREATE TABLE IF NOT EXISTS ", slow ? "kept" : "brought", "(x)");
      (*database)->Change(
          [statement](SQLite::Database& writing) {
            writing.exec(statement);
            return absl::OkStatus();
          },
          done);
    });
    EXPECT_EQ(written, synced);
    database->reset();
    EXPECT_EQ(std::filesystem::exists(log), slow && synced.ok());
    EXPECT_TRUE(OpenToWrite(file_.string())->tableExists(slow ? "kept" : "brought"));
  }
}

// One that lists all jobs takes the lock of its connection again before others get it.
TEST_F(JobDatabaseTest, ShortReadsDoNotWaitForScans) {
  absl::StatusOr<std::unique_ptr<JobDatabase>> database =
      JobDatabase::Open({.file = file_.string(),
                         .where = "test",
                         .open = [&] { return OpenToWrite(file_.string()); },
                         .prepare = &PrepareDatabase,
                         .open_to_read = [&] { return OpenBesideWriter(file_.string()); },
                         .sync = [] { return absl::OkStatus(); }});
  ASSERT_TRUE(database.ok()) << database.status();
  absl::Notification scanning;
  absl::Notification go_on;
  std::thread scanner([&] {
    EXPECT_TRUE((*database)
                    ->Scan([&](SQLite::Database&) {
                      scanning.Notify();
                      go_on.WaitForNotification();
                      return absl::OkStatus();
                    })
                    .ok());
  });
  scanning.WaitForNotification();
  EXPECT_TRUE((*database)->Read([](SQLite::Database&) { return absl::OkStatus(); }).ok());
  go_on.Notify();
  scanner.join();
}

TEST_F(JobDatabaseTest, NobodyWaitsForASyncWhoOnlyReads) {
  FakeSync sync;
  auto store = OpenSqliteJobStore(file_, nullptr, sync.function());
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(Fill(**store, 1).ok());
  sync.Hold(true);
  std::atomic<bool> returned = false;
  std::thread writer([&] {
    JobChange change;
    change.job = "jobs/0";
    change.events.emplace_back().set_sequence(2);
    EXPECT_TRUE(ApplyTo(**store, std::span(&change, 1)).ok());
    returned = true;
  });
  sync.AwaitBegun(2);
  EXPECT_TRUE((*store)->Get("jobs/0").ok());
  EXPECT_TRUE((*store)->List({}).ok());
  EXPECT_TRUE((*store)->Events("jobs/0", 0, 10).ok());
  EXPECT_FALSE(returned);  // what is not durable is not answered
  sync.Hold(false);
  writer.join();
}

// With a hundred changes under way, no thread of a caller waits, and one sync serves all.
TEST_F(JobDatabaseTest, ChangesWaitForTheDiskWithoutAThread) {
  constexpr int kJobs = 100;
  FakeSync sync;
  std::atomic<int> done = 0;
  {
    auto store = OpenSqliteJobStore(file_, nullptr, sync.function());
    ASSERT_TRUE(store.ok());
    sync.Hold(true);
    std::vector<JobAddition> additions(kJobs);
    for (int i = 0; i < kJobs; ++i) {
      JobAddition& addition = additions[static_cast<size_t>(i)];
      addition.job.job.set_name(absl::StrCat("jobs/", i));
      addition.job.job.set_state(wan::v1::JOB_STATE_QUEUED);
      addition.events.emplace_back().set_sequence(1);
      (*store)->InsertAll(std::span(&addition, 1), [&](const absl::Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        ++done;
      });
    }
    sync.AwaitBegun(1);
    while (!(*store)->Get(absl::StrCat("jobs/", kJobs - 1)).ok()) std::this_thread::yield();
    EXPECT_EQ(done, 0);
    sync.Hold(false);
    store->reset();  // finishes what was begun
    EXPECT_EQ(done, kJobs);
  }
  EXPECT_EQ(sync.begun(), 2);
}

// Counts the waits of a thread that may wait for the disk.
class CountedWaits final : public DiskWait {
 public:
  int begun = 0;
  int ended = 0;

 private:
  void Begin() override { ++begun; }
  void End() override { ++ended; }
};

JobAddition NewJobNamed(const std::string& name) {
  JobAddition addition;
  addition.job.job.set_name(name);
  addition.job.job.set_state(wan::v1::JOB_STATE_QUEUED);
  addition.events.emplace_back().set_sequence(1);
  return addition;
}

TEST_F(JobDatabaseTest, WhoMayWaitWritesAndSyncsWithoutAnotherThread) {
  std::thread::id synced_on;
  absl::Status of_sync;
  auto store = OpenSqliteJobStore(file_, nullptr, [&] {
    synced_on = std::this_thread::get_id();
    return of_sync;
  });
  ASSERT_TRUE(store.ok());
  CountedWaits waits;
  const MayWaitForDisk may_wait(waits);
  const std::vector<JobAddition> first = {NewJobNamed("jobs/0")};
  std::optional<absl::Status> told;
  const auto done = [&](const absl::Status& status) { told = status; };
  (*store)->InsertAll(first, done);
  EXPECT_EQ(told, absl::OkStatus());
  EXPECT_EQ(synced_on, std::this_thread::get_id());
  EXPECT_EQ(waits.begun, 1);
  EXPECT_EQ(waits.ended, 1);

  told.reset();
  (*store)->InsertAll(first, done);
  EXPECT_EQ(told->code(), absl::StatusCode::kAlreadyExists);

  of_sync = WithReason(absl::UnavailableError("fdatasync"), kReasonStorageUnavailable);
  const std::vector<JobAddition> second = {NewJobNamed("jobs/1")};
  (*store)->InsertAll(second, done);
  EXPECT_EQ(told, of_sync);
  EXPECT_TRUE(absl::IsNotFound((*store)->Get("jobs/1").status())) << "it was taken back";
  EXPECT_EQ(waits.begun, 3);
  EXPECT_EQ(waits.ended, 3);
}

TEST_F(JobDatabaseTest, OneThreadWaitsForTheDiskHoweverManyMay) {
  FakeSync sync;
  auto store = OpenSqliteJobStore(file_, nullptr, sync.function());
  ASSERT_TRUE(store.ok());
  sync.Hold(true);
  const std::vector<JobAddition> first = {NewJobNamed("jobs/0")};
  std::thread waiting([&] { EXPECT_TRUE(InsertAllInto(**store, first).ok()); });
  sync.AwaitBegun(1);
  CountedWaits waits;
  const MayWaitForDisk may_wait(waits);
  const std::vector<JobAddition> second = {NewJobNamed("jobs/1")};
  absl::Notification told;
  (*store)->InsertAll(second, [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    told.Notify();
  });
  EXPECT_EQ(waits.begun, 0);
  while (!(*store)->Get("jobs/1").ok()) std::this_thread::yield();  // written during the sync
  EXPECT_FALSE(told.HasBeenNotified());
  sync.Hold(false);
  told.WaitForNotification();
  waiting.join();
  EXPECT_EQ(sync.begun(), 2);
}

// A writer that stands in the middle of a transaction, as in one whose pages a slow disk takes, or
// in a checkpoint.
TEST_F(JobDatabaseTest, NobodyWaitsForAWriterWhoOnlyReads) {
  auto opened = JobDatabase::Open({.file = file_.string(),
                                   .where = "the test",
                                   .open = [&] { return OpenToWrite(file_.string()); },
                                   .prepare = &PrepareDatabase,
                                   .open_to_read = [&] { return OpenBesideWriter(file_.string()); },
                                   .sync = [] { return absl::OkStatus(); }});
  ASSERT_TRUE(opened.ok()) << opened.status();
  absl::Notification inside;
  absl::Notification leave;
  absl::Notification written;
  (*opened)->Change(
      [&](SQLite::Database& database) {
        database.exec("INSERT INTO gone_owners VALUES ('jobs/0', 'alice')");
        inside.Notify();
        leave.WaitForNotification();
        return absl::OkStatus();
      },
      [&](const absl::Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        written.Notify();
      });
  inside.WaitForNotification();
  const auto rows = [&] {
    return (*opened)->Read([](SQLite::Database& database) -> absl::StatusOr<int> {
      return database.execAndGet("SELECT count(*) FROM gone_owners").getInt();
    });
  };
  EXPECT_EQ(rows().value_or(-1), 0);
  leave.Notify();
  written.WaitForNotification();
  EXPECT_EQ(rows().value_or(-1), 1);
}

TEST(GroupSyncTest, WhoComesDuringASyncSharesTheNext) {
  constexpr int kCallers = 16;
  FakeSync sync;
  std::vector<std::string> told;
  {
    GroupSync group(sync.function());
    const auto await = [&] {
      group.Await([&](const absl::Status& status) { told.emplace_back(status.message()); });
    };
    sync.Hold(true);
    await();
    sync.AwaitBegun(1);
    for (int i = 0; i < kCallers; ++i) await();
    EXPECT_EQ(group.waiting(), kCallers);
    EXPECT_EQ(sync.begun(), 1);
    sync.FailAfter(1, absl::UnavailableError("second"));
    sync.Hold(false);
  }
  EXPECT_EQ(sync.begun(), 2);
  std::vector<std::string> wanted(kCallers + 1, "second");
  wanted.front() = "";
  EXPECT_EQ(told, wanted);
}

TEST(GroupSyncTest, ACallerSyncsItselfIfNobodyElseDoes) {
  FakeSync sync;
  GroupSync group(sync.function());
  EXPECT_EQ(group.TrySync(), absl::OkStatus());
  sync.Hold(true);
  absl::Notification told;
  group.Await([&](const absl::Status&) { told.Notify(); });
  sync.AwaitBegun(2);
  EXPECT_EQ(group.TrySync(), std::nullopt);
  sync.Hold(false);
  told.WaitForNotification();
  sync.Fail(absl::UnavailableError("third"));
  EXPECT_EQ(group.TrySync(), absl::UnavailableError("third"));
}

TEST(SerialThreadTest, ACallerRunsItsTaskItselfIfNoOtherRuns) {
  SerialThread serial;
  std::thread::id ran_on;
  const auto run = [&] { ran_on = std::this_thread::get_id(); };
  EXPECT_TRUE(serial.TryRun(run));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  absl::Notification begun;
  absl::Notification go_on;
  serial.Post([&] {
    begun.Notify();
    go_on.WaitForNotification();
  });
  begun.WaitForNotification();
  EXPECT_FALSE(serial.TryRun(run));
  go_on.Notify();
}

TEST_F(JobDatabaseTest, AfterAFailedSyncNothingIsWrittenUntilAllIsDurable) {
  FakeSync sync;
  auto store = OpenSqliteJobStore(file_, nullptr, sync.function());
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(Fill(**store, 1).ok());
  const absl::Status failure =
      WithReason(absl::UnavailableError("fdatasync"), kReasonStorageUnavailable);
  JobChange change;
  change.job = "jobs/0";
  change.events.emplace_back().set_sequence(2);
  sync.Fail(failure);
  EXPECT_EQ(ApplyTo(**store, std::span(&change, 1)), failure);
  sync.Fail(absl::OkStatus());
  EXPECT_EQ(ApplyTo(**store, std::span(&change, 1)), failure);
  ASSERT_TRUE((*store)->CheckWritable().ok());
  // The same change again and the next one, together, as the event log does it.
  std::vector<JobChange> both = {change, {.job = "jobs/0"}};
  both.back().events.emplace_back().set_sequence(3);
  EXPECT_TRUE(ApplyTo(**store, both).ok());
  const auto events = (*store)->Events("jobs/0", 0, 10);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ(events->size(), 3u);
  EXPECT_FALSE(ApplyTo(**store, std::span(&change, 1)).ok());  // its sequence is taken now

  StoredJob job;
  job.job.set_name("jobs/new");
  job.job.set_state(wan::v1::JOB_STATE_QUEUED);
  wan::v1::Event event;
  event.set_sequence(1);
  sync.Fail(failure);
  EXPECT_EQ(InsertInto(**store, job, "image", std::span(&event, 1)), failure);
  sync.Fail(absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound((*store)->Get("jobs/new").status()));
  ASSERT_TRUE((*store)->CheckWritable().ok());
  EXPECT_TRUE(InsertInto(**store, job, "image", std::span(&event, 1)).ok());
}

}  // namespace
}  // namespace wan::server
