// What only the SQLite store can do or suffer: be opened again, be damaged, be locked.
#include "server/store/sqlite_job_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/store/database_files.h"
#include "server/store/group_sync.h"
#include "server/store/job_database.h"
#include "server/store/sqlite_schema.h"
#include "tests/fakes/fake_sync.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/blocking_writes.h"
#include "tests/server/store/sqlite_job_store_fixture.h"

namespace wan::server {
namespace {

using fakes::FakeSync;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// Indexes that a migration drops, so older databases have them.
constexpr char kDroppedIndexes[] =
    "CREATE INDEX jobs_by_owner ON jobs (owner, number);"
    "CREATE INDEX jobs_by_owner_and_state ON jobs (owner, state, number)";

TEST_F(SqliteJobStoreTest, OpenedAgainItHasEverything) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(Fill(**store, 3).ok());
  }
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Unfinished()->size(), 3);
  EXPECT_EQ(ImageIn(**store, "jobs/1"), "image");
  EXPECT_EQ((*store)->Events("jobs/2", 0, 10)->size(), 1);
}

TEST_F(SqliteJobStoreTest, AnswersSurviveWithoutAClose) {
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(Fill(**store, 3).ok());
  const std::filesystem::path copy = folder_.path() / "copy";
  std::filesystem::create_directory(copy);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.is_regular_file()) std::filesystem::copy(entry.path(), copy);
  }
  auto after_kill = OpenSqliteJobStore(copy / "jobs.db");
  ASSERT_TRUE(after_kill.ok()) << after_kill.status();
  EXPECT_EQ((*after_kill)->Unfinished()->size(), 3);
}

TEST_F(SqliteJobStoreTest, SecondUserIsRefused) {
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok());
  const auto second = OpenSqliteJobStore(file_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("uses the file"));
}

TEST_F(SqliteJobStoreTest, WhatIsNoDatabaseIsRefusedByName) {
  std::ofstream(file_) << std::string(5000, 'x');
  const auto store = OpenSqliteJobStore(file_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(file_.string()));
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("wanserve repair --data-dir DIR"));
}

TEST_F(SqliteJobStoreTest, DamagedPagesAreFoundAtOpen) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(Fill(**store, 200).ok());
  }
  ASSERT_GT(std::filesystem::file_size(file_), 100'000u);
  Damage(4096 * 10, 4096 * 8);
  EXPECT_EQ(OpenSqliteJobStore(file_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteJobStoreTest, ACutFileIsFoundAtOpen) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(Fill(**store, 200).ok());
  }
  std::filesystem::resize_file(file_, 50'000);
  EXPECT_EQ(OpenSqliteJobStore(file_).status().code(), absl::StatusCode::kDataLoss);
}

struct Damage {
  std::string name;
  std::string sql;
  std::string told;  // part of what is said of it
};

class DamagedRowTest : public SqliteJobStoreTest, public testing::WithParamInterface<Damage> {
 protected:
  // Three jobs, of which jobs/1 is damaged.
  void SetUp() override {
    {
      auto store = OpenSqliteJobStore(file_);
      ASSERT_TRUE(store.ok());
      ASSERT_TRUE(Fill(**store, 3).ok());
    }
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec(GetParam().sql);
  }

  std::unique_ptr<JobStore> Open() {
    auto store = OpenSqliteJobStore(
        file_, [this](const absl::Status& problem) { problems_.push_back(problem); });
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  static std::vector<std::string> Names(const std::vector<StoredJob>& jobs) {
    std::vector<std::string> names;
    for (const StoredJob& stored : jobs) names.push_back(stored.job.name());
    return names;
  }

  std::vector<absl::Status> problems_;
};

TEST_P(DamagedRowTest, CostsItsOwnJobOnly) {
  for (const bool again : {false, true}) {
    problems_.clear();
    const std::unique_ptr<JobStore> store = Open();
    EXPECT_THAT(Names(*store->Unfinished()), ElementsAre("jobs/0", "jobs/2"));
    EXPECT_THAT(Names(store->List({})->jobs), ElementsAre("jobs/2", "jobs/0"));
    EXPECT_TRUE(store->Get("jobs/2").ok());
    const absl::Status damaged = store->Get("jobs/1").status();
    EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReasonOf(damaged), kReasonJobDamaged);
    EXPECT_THAT(
        std::string(damaged.message()),
        AllOf(HasSubstr("jobs/1 is damaged: " + GetParam().told), HasSubstr(file_.string())));
    EXPECT_THAT(problems_, SizeIs(again ? 0 : 1)) << "told once, when it is found";
    EXPECT_EQ(*store->OwnerOf("jobs/1"), "");
    // Its keys stay taken.
    EXPECT_EQ(store->FindByRequestId("", "request 1").status().code(), absl::StatusCode::kDataLoss);
    StoredJob retry;
    retry.job.set_name("jobs/retry");
    retry.job.set_state(wan::v1::JOB_STATE_QUEUED);
    retry.job.mutable_request()->set_request_id("request 1");
    EXPECT_EQ(InsertInto(*store, retry, "", {}).code(), absl::StatusCode::kAlreadyExists);
  }
  SQLite::Database database(file_.string());
  EXPECT_EQ(database.execAndGet("SELECT number FROM damaged_jobs").getInt(), 2);
}

TEST_P(DamagedRowTest, IsFoundByWhicheverCallComesUponIt) {
  const std::unique_ptr<JobStore> store = Open();
  JobQuery query;
  query.limit = 1;
  query.after = store->List(query)->next;
  const auto page = store->List(query);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Names(page->jobs), ElementsAre("jobs/0")) << "a page does not end at it";
}

INSTANTIATE_TEST_SUITE_P(
    Each, DamagedRowTest,
    testing::Values(Damage{"Bytes", "UPDATE jobs SET job = x'ff' WHERE name = 'jobs/1'",
                           "its bytes are not a wan.v1.Job"},
                    Damage{"Null", "UPDATE jobs SET job = '' WHERE name = 'jobs/1'",
                           "its bytes belong to the job ''"},
                    Damage{"Other",
                           "UPDATE jobs SET job = (SELECT job FROM jobs WHERE name = 'jobs/2') "
                           "WHERE name = 'jobs/1'",
                           "its bytes belong to the job 'jobs/2'"},
                    Damage{"State", "UPDATE jobs SET state = 77 WHERE name = 'jobs/1'",
                           "its state is 77, which is not a state of a job"},
                    Damage{"OtherState", "UPDATE jobs SET state = 2 WHERE name = 'jobs/1'",
                           "its state is 2 in the table, but 1 in its bytes"},
                    Damage{"FirstEvent", "DELETE FROM events WHERE job = 2",
                           "its first event is missing"}),
    [](const auto& damage) { return damage.param.name; });

TEST_F(SqliteJobStoreTest, AMissingOrDamagedEventIsNamed) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(Fill(**store, 1).ok());
    JobChange change{"jobs/0", std::nullopt, {}, std::nullopt};
    for (int sequence = 2; sequence <= 5; ++sequence) {
      change.events.emplace_back().set_sequence(sequence);
    }
    ASSERT_TRUE(ApplyTo(**store, std::span(&change, 1)).ok());
  }
  {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    database.exec("DELETE FROM events WHERE sequence = 3");
    database.exec("UPDATE events SET event = x'ff' WHERE sequence = 5");
  }
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok());
  EXPECT_TRUE((*store)->Get("jobs/0").ok());
  EXPECT_THAT(std::string((*store)->Events("jobs/0", 0, 10).status().message()),
              HasSubstr("jobs/0 is damaged: its event 3 is missing"));
  EXPECT_THAT(std::string((*store)->Events("jobs/0", 4, 10).status().message()),
              HasSubstr("jobs/0 is damaged: its event 5 cannot be read"));
  EXPECT_EQ((*store)->Events("jobs/0", 3, 1)->size(), 1u);
}

// Everything that was committed is read, also what lies in the log only, and nothing is written.
TEST_F(SqliteJobStoreTest, CanBeReadWithoutARightToWrite) {
  const std::filesystem::path copy = folder_.path() / "a copy?#%41";
  std::filesystem::create_directory(copy);
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(Fill(**store, 3).ok());
    std::filesystem::copy(file_, copy);
    std::filesystem::copy(file_.string() + "-wal", copy);
    ASSERT_LT(std::filesystem::file_size(copy / "jobs.db"), 10'000u) << "jobs are in the log";
  }
  for (const std::filesystem::path& folder : {copy, folder_.path()}) {
    const auto store = OpenSqliteJobStoreForReading(folder / "jobs.db");
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->Unfinished()->size(), 3u);
    EXPECT_EQ(ImageIn(**store, "jobs/1"), "image");
    for (const absl::Status& refused : {(*store)->CheckWritable(), Fill(**store, 4)}) {
      EXPECT_FALSE(refused.ok());
    }
    EXPECT_EQ(ReasonOf((*store)->CheckWritable()), kReasonStorageUnavailable);
  }
  EXPECT_FALSE(OpenSqliteJobStoreForReading(folder_.path() / "none.db").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none.db"));
}

TEST_F(SqliteJobStoreTest, WritesNothingThatNoLaterStartWouldFind) {
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok());
  const std::filesystem::path moved = folder_.path() / "moved.db";
  std::filesystem::rename(file_, moved);
  const absl::Status refused = Fill(**store, 1);
  EXPECT_EQ(ReasonOf(refused), kReasonStorageUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was removed or replaced"));
  std::filesystem::rename(moved, file_);
  EXPECT_TRUE(Fill(**store, 1).ok());
}

TEST_F(SqliteJobStoreTest, ARemovedJobLeavesNoRows) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    StoredJob stored;
    stored.job.set_name("jobs/a");
    stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    (*stored.job.mutable_request()->mutable_labels())["n"] = "1";
    wan::v1::Event event;
    event.set_sequence(1);
    ASSERT_TRUE(InsertInto(**store, stored, "image", std::span(&event, 1)).ok());
    JobChange change{.job = "jobs/a"};
    stored.job.set_state(wan::v1::JOB_STATE_FAILED);
    change.row = stored.job;
    change.report = wan::v1::JobReport();
    change.files = {{"vae", 1, "key"}};
    ASSERT_TRUE(ApplyTo(**store, std::span(&change, 1)).ok());
    ASSERT_TRUE(RemoveFrom(**store, "jobs/a").ok());
  }
  SQLite::Database database(file_.string(), SQLite::OPEN_READONLY);
  for (const char* const table :
       {"jobs", "events", "reports", "images", "job_files", "job_keys", "job_labels"}) {
    EXPECT_EQ(database.execAndGet(absl::StrCat("SELECT COUNT(*) FROM ", table)).getInt(), 0)
        << table;
  }
}

TEST_F(SqliteJobStoreTest, ADatabaseFromBeforeTheKeysIsListedByThem) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    for (int i = 0; i < 3; ++i) {
      StoredJob stored;
      stored.job.set_name(absl::StrCat("jobs/", i));
      stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
      stored.job.mutable_request()->set_model(i == 1 ? "b" : "a");
      (*stored.job.mutable_request()->mutable_labels())["n"] = absl::StrCat(i);
      wan::v1::Event event;
      event.set_sequence(1);
      ASSERT_TRUE(InsertInto(**store, stored, "", std::span(&event, 1)).ok());
    }
  }
  {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    for (const char* const table :
         {"job_keys", "job_labels", "removed_jobs", "job_files", "webhooks", "ended_totals",
          "removed_use", "gone_owners", "secret_key", "latents"}) {
      database.exec(absl::StrCat("DROP TABLE ", table));
    }
    database.exec(kDroppedIndexes);
    database.exec("PRAGMA user_version = 3");
  }
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok()) << store.status();
  JobQuery query;
  query.filter = *ParseJobFilter("model = a AND labels.n = 2");
  ASSERT_THAT((*store)->List(query)->jobs, SizeIs(1));
  EXPECT_EQ((*store)->List(query)->jobs[0].job.name(), "jobs/2");
  query.filter = *ParseJobFilter("model = a");
  EXPECT_THAT((*store)->List(query)->jobs, SizeIs(2));
}

TEST_F(SqliteJobStoreTest, ADatabaseFromBeforeTheOwnersIndexesIsListedByThem) {
  std::string key;
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(Fill(**store, 3).ok());
    key = *(*store)->SecretKey();
    EXPECT_EQ(key.size(), 32u);
  }
  {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    for (const char* const what :
         {"INDEX job_keys_by_owner_and_end", "TABLE gone_owners",
          "INDEX job_keys_by_owner_and_priority", "TABLE secret_key", "TABLE latents"}) {
      database.exec(absl::StrCat("DROP ", what));
    }
    database.exec("ALTER TABLE job_files DROP COLUMN sha256");
    database.exec("INSERT INTO removed_jobs (name) VALUES ('jobs/gone')");
    database.exec("CREATE INDEX webhooks_by_due ON webhooks (due, number)");
    database.exec(kDroppedIndexes);
    database.exec("PRAGMA user_version = 8");
  }
  JobQuery query;
  query.owner = "";
  for (const bool again : {false, true}) {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const char* const order : {"create_time", "end_time", "priority"}) {
      query.order = *ParseJobOrder(order);
      EXPECT_THAT((*store)->List(query)->jobs, SizeIs(3)) << order;
    }
    // Nobody knows whose a job was that was removed before.
    EXPECT_EQ(ReasonOf((*store)->OwnerOf("jobs/gone").status()), kReasonJobNotFound);
    const std::string made = *(*store)->SecretKey();
    EXPECT_EQ(made == key, again) << "one for each store, for good";
    key = made;
  }
}

// Ends and removes the jobs that Fill has made.
void RemoveAll(JobStore& store, int jobs) {
  for (int i = 0; i < jobs; ++i) {
    JobChange change{absl::StrCat("jobs/", i), wan::v1::Job(), {}, std::nullopt};
    change.row->set_name(change.job);
    change.row->set_state(wan::v1::JOB_STATE_FAILED);
    ASSERT_TRUE(ApplyTo(store, std::span(&change, 1)).ok());
    ASSERT_TRUE(RemoveFrom(store, change.job).ok());
  }
}

TEST_F(SqliteJobStoreTest, SpaceOfRemovedJobsIsGivenBackInPieces) {
  constexpr int kJobs = 3000;
  uintmax_t full = 0;
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(Fill(**store, kJobs).ok());
  }
  full = std::filesystem::file_size(file_);
  ASSERT_GT(full, 2'000'000U) << "more than what stays free";
  {
    auto store = OpenSqliteJobStore(file_);
    RemoveAll(**store, kJobs);
    int pieces = 1;
    while (*(*store)->Vacuum()) ++pieces;
    EXPECT_GT(pieces, 2) << "64 pages at once";
  }
  EXPECT_LT(std::filesystem::file_size(file_), full * 3 / 4);
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->List({})->jobs.empty());
}

TEST_F(SqliteJobStoreTest, ADatabaseThatCannotShrinkUsesItsSpaceAgain) {
  // As an older server made it.
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("PRAGMA user_version = 0; CREATE TABLE t (x); DROP TABLE t");
  constexpr int kJobs = 1500;
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(Fill(**store, kJobs).ok());
    RemoveAll(**store, kJobs);
    EXPECT_FALSE(*(*store)->Vacuum());
  }
  const uintmax_t full = std::filesystem::file_size(file_);
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(Fill(**store, kJobs / 2).ok());
  }
  EXPECT_EQ(std::filesystem::file_size(file_), full);
}

TEST_F(SqliteJobStoreTest, ANewerSchemaIsRefused) {
  { ASSERT_TRUE(OpenSqliteJobStore(file_).ok()); }
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 1000");
  const auto store = OpenSqliteJobStore(file_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("the schema has version 1000"));
}

TEST_F(SqliteJobStoreTest, APipeIsRefusedAndNotWaitedFor) {
  for (const std::string suffix : {"", "-wal"}) {
    const std::string pipe = file_.string() + suffix;
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const absl::Status& refused :
         {OpenSqliteJobStore(file_).status(), OpenSqliteJobStoreForReading(file_).status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
      EXPECT_THAT(std::string(refused.message()),
                  HasSubstr(pipe + " is a pipe, socket or device; must be a file"));
    }
    std::filesystem::remove(pipe);
  }
}

TEST_F(SqliteJobStoreTest, AFolderThatIsNotThereIsNamed) {
  const auto store = OpenSqliteJobStore(folder_.path() / "none" / "jobs.db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("none"));
}

}  // namespace
}  // namespace wan::server
