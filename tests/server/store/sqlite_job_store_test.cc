// What only the SQLite store can do or suffer: be opened again, be damaged, be locked.
#include "server/store/sqlite_job_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

class SqliteJobStoreTest : public testing::Test {
 protected:
  static absl::Status Fill(JobStore& store, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      StoredJob stored;
      stored.job.set_name(absl::StrCat("jobs/", i));
      stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
      stored.job.mutable_request()->set_prompt(std::string(500, 'p'));
      wan::v1::Event event;
      event.set_sequence(1);
      const absl::Status status = store.Insert(stored, "image", std::span(&event, 1));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Overwrites a part of the file.
  void Damage(uint64_t offset, size_t bytes) {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << std::string(bytes, '\xa5');
  }

  TempFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "jobs.db";
};

TEST_F(SqliteJobStoreTest, OpenedAgainItHasEverything) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(Fill(**store, 3).ok());
  }
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Unfinished()->size(), 3);
  EXPECT_EQ(*(*store)->Image("jobs/1"), "image");
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

TEST_F(SqliteJobStoreTest, SyncsEveryCommitToAWriteAheadLog) {
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(Fill(**store, 1).ok());
  EXPECT_TRUE(std::filesystem::exists(file_.string() + "-wal"));
}

TEST_F(SqliteJobStoreTest, SecondUserIsRefused) {
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok());
  const auto second = OpenSqliteJobStore(file_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process uses the file"));
}

TEST_F(SqliteJobStoreTest, WhatIsNoDatabaseIsRefusedByName) {
  std::ofstream(file_) << std::string(5000, 'x');
  const auto store = OpenSqliteJobStore(file_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(file_.string()));
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("restore a copy"));
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

TEST_F(SqliteJobStoreTest, ARowThatIsNoJobIsDataLoss) {
  {
    auto store = OpenSqliteJobStore(file_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(Fill(**store, 1).ok());
  }
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec("UPDATE jobs SET job = x'ff'");
  auto store = OpenSqliteJobStore(file_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Unfinished().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*store)->Get("jobs/0").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteJobStoreTest, ANewerSchemaIsRefused) {
  { ASSERT_TRUE(OpenSqliteJobStore(file_).ok()); }
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 1000");
  const auto store = OpenSqliteJobStore(file_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("schema version 1000"));
}

TEST_F(SqliteJobStoreTest, AFolderThatIsNotThereIsNamed) {
  const auto store = OpenSqliteJobStore(folder_.path() / "none" / "jobs.db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("none"));
}

}  // namespace
}  // namespace wan::server
