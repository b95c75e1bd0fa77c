#include "server/postgres/connection.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/support/postgres_server.h"

namespace wan::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() : url_(SharedPostgresServer().NewDatabase()) {
    auto opened = Connection::Open(url_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
  }

  const std::string url_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, ValuesComeBackAsTheyWere) {
  const std::string bytes("\0\xff'\\x", 5);
  const Rows rows = connection_->Run(
      "SELECT $1::bigint, $2::double precision, $3::boolean, $4::text, $5::bytea, $6::bytea, "
      "(-7)::smallint, 70000::integer",
      {std::numeric_limits<int64_t>::min(), -0.1, true, std::string_view("caf\xc3\xa9"),
       Bytes{bytes}, PgValue()});
  ASSERT_TRUE(connection_->TakeStatus().ok());
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows.Int(0, 0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(rows.Double(0, 1), -0.1);
  EXPECT_TRUE(rows.Bool(0, 2));
  EXPECT_EQ(rows.Text(0, 3), "caf\xc3\xa9");
  EXPECT_EQ(rows.Text(0, 4), bytes);
  EXPECT_TRUE(rows.IsNull(0, 5));
  EXPECT_EQ(rows.Int(0, 6), -7);
  EXPECT_EQ(rows.Int(0, 7), 70000);
}

TEST_F(ConnectionTest, EmptyBytesAreNotNull) {
  const Rows rows = connection_->Run("SELECT $1::bytea, $2::text", {Bytes{}, std::string_view()});
  EXPECT_FALSE(rows.IsNull(0, 0));
  EXPECT_FALSE(rows.IsNull(0, 1));
}

TEST_F(ConnectionTest, AnErrorSticksUntilItIsTaken) {
  connection_->Run("SELECT 1 / $1::bigint", {int64_t{0}});
  EXPECT_TRUE(connection_->failed());
  EXPECT_TRUE(connection_->Run("SELECT 1").empty());
  const absl::Status status = connection_->TakeStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("division by zero (22012)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("PostgreSQL database test"));
  EXPECT_EQ(connection_->Run("SELECT 1").size(), 1);
  EXPECT_FALSE(connection_->lost());
}

TEST_F(ConnectionTest, AnErrorShowsNoValues) {
  connection_->RunScript("CREATE SCHEMA wanserve; CREATE TABLE t (name text UNIQUE)");
  connection_->Run("INSERT INTO t VALUES ($1)", {std::string_view("a secret cat")});
  connection_->Run("INSERT INTO t VALUES ($1)", {std::string_view("a secret cat")});
  const absl::Status status = connection_->TakeStatus();
  EXPECT_THAT(std::string(status.message()), HasSubstr("23505"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
}

TEST_F(ConnectionTest, ALostConnectionIsALackOfStorage) {
  SharedPostgresServer().Execute(
      url_, "SELECT pg_terminate_backend(" + std::to_string(connection_->backend()) + ")");
  connection_->Run("SELECT 1");
  EXPECT_TRUE(connection_->lost());
  const absl::Status status = connection_->TakeStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
}

TEST_F(ConnectionTest, ADatabaseThatDoesNotAnswerIsAway) {
  connection_->set_patience(absl::Milliseconds(300));
  connection_->Run("SELECT 1 FROM pg_sleep(20)");
  EXPECT_TRUE(connection_->lost());
  const absl::Status status = connection_->TakeStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it has not answered for 300ms"));
}

TEST_F(ConnectionTest, ValuesLargerThanTheSocketTakesAtOnceArrive) {
  const std::string large(size_t{32} << 20, 'x');
  const Rows rows = connection_->Run("SELECT $1::bytea", {Bytes{large}});
  ASSERT_TRUE(connection_->TakeStatus().ok());
  EXPECT_EQ(rows.Text(0, 0).size(), large.size());
}

TEST_F(ConnectionTest, ACommitIsDurableWhateverTheDefaultIs) {
  SharedPostgresServer().Execute(
      url_, "ALTER DATABASE " + SharedPostgresServer().Ask(url_, "SELECT current_database()") +
                " SET synchronous_commit = off");
  auto again = Connection::Open(url_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->Run("SHOW synchronous_commit").Text(0, 0), "on");
}

}  // namespace
}  // namespace wan::server
