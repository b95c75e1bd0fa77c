// The real wanserve with its jobs in a real PostgreSQL: kill -9, a database that goes away, and
// starts that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/e2e/test_server.h"
#include "tests/support/postgres_server.h"

namespace wan::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;
using wan::v1::Event;

std::function<bool(const Event&)> Step(int step) {
  return [step](const Event& event) {
    return event.has_step_progress() && event.step_progress().step() >= step;
  };
}

class PostgresTest : public testing::Test {
 protected:
  ServerOptions Options() {
    return {.data_dir = folder_.path(), .flags = {"--store", url_, "--checkpoint-interval", "0"}};
  }

  // A start that is expected to fail.
  ProcessResult Start(const std::string& store, const std::string& folder) {
    return RunProcess({std::string(WAN_BINARY_DIR) + "/wanserve", "--listen", "127.0.0.1:0",
                       "--metrics-listen", "127.0.0.1:0", "--http-listen", "none", "--data-dir",
                       folder, "--model", ServerOptions::TinyModel(), "--store", store});
  }

  const TemporaryFolder folder_;
  PostgresServer& postgres_ = SharedPostgresServer();
  const std::string url_ = postgres_.NewDatabase();
};

TEST_F(PostgresTest, AKilledServerGoesOnWithItsJobs) {
  std::string running;
  std::string waiting;
  int64_t seen = 0;
  {
    TestServer server(Options());
    running = server.Submit(TinyRequest(/*steps=*/200)).name();
    waiting = server.Submit(TinyRequest()).name();
    seen = server.Watch(running, 0, Step(2)).back().sequence();
    server.Kill();
  }
  TestServer server(Options());
  const std::vector<Event> log = server.Watch(running);
  for (size_t i = 0; i < log.size(); ++i) ASSERT_EQ(log[i].sequence(), static_cast<int64_t>(i + 1));
  EXPECT_GE(log.back().sequence(), seen) << "an event that a watcher saw is gone";
  ASSERT_TRUE(log.back().has_completed()) << log.back().DebugString();
  EXPECT_EQ(server.Get(running).attempt(), 2);
  EXPECT_EQ(server.Await(waiting).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(postgres_.Ask(url_, "SELECT count(*) FROM wanserve.jobs"), "2");
  EXPECT_EQ(server.Terminate(), 0) << server.Log();
}

TEST_F(PostgresTest, ADatabaseThatIsAwayCostsNoJob) {
  TestServer server(Options());
  const std::string running = server.Submit(TinyRequest(/*steps=*/100)).name();
  server.Watch(running, 0, Step(1));
  postgres_.StopAtOnce();
  grpc::ClientContext context;
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = TinyRequest();
  wan::v1::Job job;
  const grpc::Status refused = server.videos().CreateJob(&context, create, &job);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
  EXPECT_THAT(refused.error_details(), HasSubstr("STORAGE_UNAVAILABLE"));
  EXPECT_THAT(refused.error_details(), HasSubstr("RetryInfo"));
  postgres_.Start();
  // A watch that needs the database ends until the server has connected again.
  while (server.Get(running).state() == wan::v1::JOB_STATE_RUNNING) server.Watch(running);
  const wan::v1::Job ended = server.Get(running);
  EXPECT_EQ(ended.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(ended.attempt(), 1) << "it went on";
}

TEST_F(PostgresTest, ItDoesNotStartWithoutItsDatabaseAndSaysWhy) {
  const ProcessResult nobody = Start("postgresql://wan@127.0.0.1:1/wan", folder_.path());
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("PostgreSQL database wan on 127.0.0.1"));
  const ProcessResult no_url = Start("mysql://db", folder_.path());
  EXPECT_EQ(no_url.exit_code, 2);
  EXPECT_THAT(no_url.err, HasSubstr("--store is not the URL of a PostgreSQL database; must be "
                                    "postgresql://USER@HOST:PORT/DATABASE"));
  const ProcessResult password = Start("postgresql://wan:hush@db/wan", folder_.path());
  EXPECT_EQ(password.exit_code, 2);
  EXPECT_THAT(password.err, HasSubstr("PGPASSFILE"));
  EXPECT_THAT(password.err + password.out, Not(HasSubstr("hush")));
}

TEST_F(PostgresTest, ASecondServerOnTheDatabaseIsRefused) {
  TestServer server(Options());
  const TemporaryFolder other;
  const ProcessResult second = Start(url_, other.path());
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("another server uses the database"));
}

TEST_F(PostgresTest, ADataFolderOfOtherJobsIsRefused) {
  {
    TestServer server({.data_dir = folder_.path()});
    server.Await(server.Submit(TinyRequest()).name());
  }
  const ProcessResult refused = Start(url_, folder_.path());
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("its videos belong to the jobs in its file jobs.db"));
}

}  // namespace
}  // namespace wan::e2e
