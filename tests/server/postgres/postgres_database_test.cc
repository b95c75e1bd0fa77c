#include "server/postgres/postgres_database.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/postgres_server.h"

namespace wan::server {
namespace {

class PostgresDatabaseTest : public testing::Test {
 protected:
  PostgresDatabaseTest() : url_(SharedPostgresServer().NewDatabase()) { Open(kStatementPatience); }

  void Open(absl::Duration patience) {
    database_.reset();
    auto opened = PostgresDatabase::Open(url_, clock_, nullptr, patience);
    EXPECT_TRUE(opened.ok()) << opened.status();
    database_ = *std::move(opened);
  }

  // Lets the writing thread wait for `go_on_`, so that the changes that come now share a
  // transaction.
  void HoldWriter() {
    absl::Notification begun;
    database_->Change(
        [&](Connection&) {
          begun.Notify();
          go_on_.WaitForNotification();
          return absl::OkStatus();
        },
        [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
    begun.WaitForNotification();
  }

  static void ExpectAway(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable) << status;
  }

  // A statement that takes longer than the patience of a second.
  static absl::Status Hang(Connection& connection) {
    connection.Run("SELECT 1 FROM pg_sleep(20)");
    return absl::OkStatus();
  }

  const std::string url_;
  fakes::FakeClock clock_;
  absl::Notification go_on_;
  std::unique_ptr<PostgresDatabase> database_;
};

TEST_F(PostgresDatabaseTest, ARefusalIsToldToItsCallerAloneAlthoughTheConnectionBreaks) {
  std::vector<absl::Status> results(3);
  absl::Notification ended;
  HoldWriter();
  bool broken = false;
  for (size_t i = 0; i < results.size(); ++i) {
    database_->Change(
        [&, i](Connection& connection) -> absl::Status {
          if (i != 1) return absl::OkStatus();
          if (!broken) {
            SharedPostgresServer().Ask(url_, absl::StrCat("SELECT pg_terminate_backend(",
                                                          connection.backend(), ", 5000)"));
          }
          broken = true;
          return absl::NotFoundError("no such job");
        },
        [&, i](const absl::Status& status) {
          results[i] = status;
          if (i + 1 == results.size()) ended.Notify();
        });
  }
  go_on_.Notify();
  ended.WaitForNotification();
  EXPECT_TRUE(results[0].ok()) << results[0];
  EXPECT_TRUE(absl::IsNotFound(results[1])) << results[1];
  EXPECT_TRUE(results[2].ok()) << results[2];
}

TEST_F(PostgresDatabaseTest, ATransactionTakesChangesUntilTheyAreLarge) {
  const std::vector<size_t> bytes = {size_t{9} << 20, size_t{9} << 20, 1, 1};
  std::vector<int64_t> transactions(bytes.size());
  absl::Notification ended;
  HoldWriter();
  for (size_t i = 0; i < bytes.size(); ++i) {
    database_->Change(
        [&, i](Connection& connection) {
          transactions[i] = connection.Run("SELECT txid_current()").Int(0, 0);
          return absl::OkStatus();
        },
        [&, i](const absl::Status& status) {
          EXPECT_TRUE(status.ok()) << status;
          if (i + 1 == bytes.size()) ended.Notify();
        },
        nullptr, bytes[i]);
  }
  go_on_.Notify();
  ended.WaitForNotification();
  EXPECT_EQ(transactions[0], transactions[1]);
  EXPECT_NE(transactions[1], transactions[2]);
  EXPECT_EQ(transactions[2], transactions[3]);
}

TEST_F(PostgresDatabaseTest, ADatabaseThatHangsStopsReadersAndWritersForALimitedTime) {
  Open(absl::Seconds(1));
  ExpectAway(database_->Read([](Connection& connection) { return Hang(connection); }));
  absl::Notification ended;
  database_->Change(&Hang, [&](const absl::Status& status) {
    ExpectAway(status);
    ended.Notify();
  });
  ended.WaitForNotification();
  EXPECT_TRUE(database_->Read([](Connection&) { return absl::OkStatus(); }).ok());
}

TEST_F(PostgresDatabaseTest, AnObjectThatEndsDoesNotTryEveryChangeWithADatabaseThatHangs) {
  Open(absl::Seconds(1));
  constexpr int kChanges = 5;
  int tried = 0;
  int told = 0;
  HoldWriter();
  for (int i = 0; i < kChanges; ++i) {
    database_->Change(
        [&](Connection& connection) {
          ++tried;
          return Hang(connection);
        },
        [&](const absl::Status& status) {
          ++told;
          ExpectAway(status);
        },
        nullptr, size_t{16} << 20);
  }
  std::thread end([&] { database_.reset(); });
  go_on_.Notify();
  end.join();
  EXPECT_EQ(told, kChanges);
  EXPECT_LE(tried, 2);
}

}  // namespace
}  // namespace wan::server
