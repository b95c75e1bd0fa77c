// A JobService whose jobs are in PostgreSQL: restarts, and a database that goes away while jobs run
// and come.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/postgres/postgres_job_store.h"
#include "tests/server/jobs/lifecycle_fixture.h"
#include "tests/support/postgres_server.h"

namespace wan::server {
namespace {

using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

class PostgresServiceTest : public LifecycleTest {
 protected:
  PostgresServiceTest() {
    options_.open_store = [this](std::function<void(const absl::Status&)> on_problem)
        -> absl::StatusOr<std::unique_ptr<JobStore>> {
      return OpenPostgresJobStore(url_, std::move(on_problem), clock_);
    };
  }

  // Lets the seconds pass that the log and the watch wait before they try again, until `done`.
  void AdvanceUntil(const std::function<bool()>& done) {
    while (!done()) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
  }

  PostgresServer& server_ = SharedPostgresServer();
  const std::string url_ = server_.NewDatabase();
};

TEST_F(PostgresServiceTest, ARestartedServerGoesOn) {
  Open();
  const std::string running = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  EXPECT_EQ(Get(running).state(), JOB_STATE_RUNNING);
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  Open();
  for (const std::string& job : {running, waiting}) {
    const std::vector<wan::v1::Event> events = RunToEnd(job);
    ExpectNoHoles(events);
    EXPECT_EQ(Brief(events.back()), "completed");
    EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
    EXPECT_TRUE(service_->OpenArtifact(job + "/artifacts/video.mp4", 0).ok());
  }
}

TEST_F(PostgresServiceTest, WhileTheDatabaseIsAwayRunningJobsGoOnAndNothingAcceptedIsLost) {
  Open();
  const std::string running = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  server_.StopAtOnce();

  const auto refused = calls().Create(Request(), false);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable) << refused.status();
  EXPECT_EQ(ReasonOf(refused.status()), kReasonStorageUnavailable);
  EXPECT_TRUE(RetryDelayOf(refused.status()).has_value());
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED) << "a live job is known without the database";
  const absl::Status unread = service_->Get("jobs/other").status();
  EXPECT_EQ(ReasonOf(unread), kReasonStorageUnavailable) << unread;
  EXPECT_TRUE(RetryDelayOf(unread).has_value());
  EXPECT_EQ(unread.message().find("PostgreSQL"), unread.message().npos) << unread;

  engine_->Release("Step_1_Inference");
  while (engine_->Generated().empty()) std::this_thread::yield();
  EXPECT_EQ(Get(running).state(), JOB_STATE_RUNNING) << "its end is not stored yet";

  server_.Start();
  for (const std::string& job : {running, waiting}) {
    AdvanceUntil([&] {
      const auto found = service_->Get(job);
      return found.ok() && found->state() == JOB_STATE_COMPLETED;
    });
    ExpectNoHoles(RunToEnd(job));
    EXPECT_TRUE(service_->OpenArtifact(job + "/artifacts/video.mp4", 0).ok());
  }
  EXPECT_EQ(Get(running).attempt(), 1) << "it was not run again";
  const std::string later = Create();
  EXPECT_EQ(Brief(RunToEnd(later).back()), "completed");
}

TEST_F(PostgresServiceTest, AServerDoesNotStartWithoutItsDatabase) {
  server_.StopAtOnce();
  options_.data_dir = folder_.path() / "data";
  const auto service = JobService::Open(options_, {engine_.get()}, clock_);
  EXPECT_EQ(service.status().code(), absl::StatusCode::kUnavailable) << service.status();
  server_.Start();
}

}  // namespace
}  // namespace wan::server
