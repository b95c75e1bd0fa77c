// The store in PostgreSQL beyond what every JobStore does (job_store_conformance_test.cc): two
// servers, lost connections, commits with an unknown end, and databases that it refuses.
#include "server/postgres/postgres_job_store.h"

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/postgres/connection.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/store/blocking_writes.h"
#include "tests/support/postgres_server.h"

namespace wan::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

StoredJob NewJob(const std::string& name) {
  StoredJob stored;
  stored.job.set_name(name);
  stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
  stored.job.mutable_request()->set_prompt("a cat");
  return stored;
}

wan::v1::Event NewEvent(int64_t sequence, const std::string& stage = "s") {
  wan::v1::Event event;
  event.set_sequence(sequence);
  event.mutable_stage_started()->set_stage(stage);
  return event;
}

class PostgresJobStoreTest : public testing::Test {
 protected:
  PostgresJobStoreTest() : server_(SharedPostgresServer()), url_(server_.NewDatabase()) {}

  absl::StatusOr<std::unique_ptr<JobStore>> Open() {
    return OpenPostgresJobStore(url_, nullptr, clock_);
  }

  std::unique_ptr<JobStore> Opened() {
    auto opened = Open();
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  static absl::Status Insert(JobStore& store, const std::string& name) {
    const wan::v1::Event first = NewEvent(1);
    return InsertInto(store, NewJob(name), "", std::span(&first, 1));
  }

  static absl::Status Append(JobStore& store, const std::string& job, const wan::v1::Event& event) {
    const JobChange change{.job = job, .events = {event}};
    return ApplyTo(store, std::span(&change, 1));
  }

  void BreakConnections() {
    server_.Execute(url_,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                    "current_database() AND pid <> pg_backend_pid()");
  }

  // The other tests use the same server.
  void TearDown() override {
    if (held_) ReleaseCommits();
  }

  // Lets commits wait for a standby that does not exist.
  void HoldCommits() {
    held_ = true;
    server_.Execute(url_, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server_.Execute(url_, "SELECT pg_reload_conf()");
    AwaitAnswer("SHOW synchronous_standby_names", "nobody");
    // The process that makes checkpoints tells the others of the setting.
    server_.Execute(url_, "CHECKPOINT");
  }
  void ReleaseCommits() {
    held_ = false;
    server_.Execute(url_, "ALTER SYSTEM RESET synchronous_standby_names");
    server_.Execute(url_, "SELECT pg_reload_conf()");
  }
  // Breaks the connection of the commit that waits, and returns when it is gone: the transaction is
  // committed, but whoever asked for it cannot know.
  void BreakHeldCommit() {
    const std::string waiting =
        "FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'";
    AwaitAnswer("SELECT count(*) " + waiting, "1");
    server_.Execute(url_, "SELECT pg_terminate_backend(pid, 10000) " + waiting);
    ReleaseCommits();
  }

  void AwaitAnswer(const std::string& sql, const std::string& wanted) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    for (std::string answer; answer != wanted; std::this_thread::yield()) {
      answer = server_.Ask(url_, sql);
      if (absl::Now() < deadline) continue;
      ADD_FAILURE() << sql << " returns " << answer << " after 30 s; must be " << wanted;
      return;
    }
  }

  static void ExpectAway(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable) << status;
  }

  PostgresServer& server_;
  const std::string url_;
  fakes::FakeClock clock_;
  bool held_ = false;  // whether commits wait
};

TEST_F(PostgresJobStoreTest, JobsAreThereAfterARestart) {
  std::vector<std::string> ids;
  const auto note = [&ids](const std::string& id) {
    ids.push_back(id);
    return absl::OkStatus();
  };
  auto opened = OpenPostgresJobStore(url_, nullptr, clock_, note);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(Insert(**opened, "jobs/a").ok());
  const std::string key = *(*opened)->SecretKey();
  EXPECT_THAT(key, SizeIs(32));
  opened->reset();
  opened = OpenPostgresJobStore(url_, nullptr, clock_, note);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(*(*opened)->SecretKey(), key);
  EXPECT_THAT(*(*opened)->Unfinished(), SizeIs(1));
  EXPECT_THAT(ids, ElementsAre(SizeIs(64), ids.front()));
}

TEST_F(PostgresJobStoreTest, ASecondServerIsRefusedAndToldByWhom) {
  auto first = Opened();
  const auto second = Open();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(second.status()), "") << "a server does not start so";
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("another server uses the database (from this machine, connected since "));
  EXPECT_TRUE(Insert(*first, "jobs/a").ok());
  first.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(PostgresJobStoreTest, BrokenConnectionsAreReplaced) {
  const auto store = Opened();
  ASSERT_TRUE(Insert(*store, "jobs/a").ok());
  ASSERT_TRUE(store->Get("jobs/a").ok());
  BreakConnections();
  EXPECT_TRUE(store->Get("jobs/a").ok());
  EXPECT_TRUE(Insert(*store, "jobs/b").ok());
  EXPECT_FALSE(Open().ok()) << "it has the lock again";
}

TEST_F(PostgresJobStoreTest, AServerThatLostItsPlaceWritesNoMore) {
  const auto first = Opened();
  ASSERT_TRUE(Insert(*first, "jobs/a").ok());
  BreakConnections();
  auto second = Opened();
  ASSERT_TRUE(Insert(*second, "jobs/b").ok());
  ExpectAway(Insert(*first, "jobs/c"));
  second.reset();
  const absl::Status refused = first->CheckWritable();
  EXPECT_EQ(ReasonOf(refused), kReasonStorageUnavailable);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("another server has used the database while this one was disconnected"));
  EXPECT_FALSE(Insert(*first, "jobs/c").ok());
  EXPECT_TRUE(first->Get("jobs/b").ok()) << "it may read";
}

TEST_F(PostgresJobStoreTest, ADatabaseThatIsAwayIsALackOfStorage) {
  const auto store = Opened();
  ASSERT_TRUE(Insert(*store, "jobs/a").ok());
  server_.StopAtOnce();
  ExpectAway(Insert(*store, "jobs/b"));
  ExpectAway(store->Get("jobs/a").status());
  ExpectAway(store->List({}).status());
  ExpectAway(store->CheckWritable());
  const auto other = Open();
  EXPECT_EQ(other.status().code(), absl::StatusCode::kUnavailable) << other.status();
  EXPECT_EQ(ReasonOf(other.status()), "");
  server_.Start();
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(store->CheckWritable().ok());
  EXPECT_TRUE(store->Get("jobs/a").ok());
  EXPECT_TRUE(absl::IsNotFound(store->Get("jobs/b").status()));
  EXPECT_TRUE(Insert(*store, "jobs/b").ok());
}

TEST_F(PostgresJobStoreTest, AJobThatWasRefusedIsNotThereAlthoughItWasCommitted) {
  const auto store = Opened();
  HoldCommits();
  const JobAddition addition{NewJob("jobs/a"), {}, {NewEvent(1)}};
  absl::Notification ended;
  absl::Status inserted;
  store->InsertAll(std::span(&addition, 1), [&](const absl::Status& status) {
    inserted = status;
    ended.Notify();
  });
  BreakHeldCommit();
  ended.WaitForNotification();
  ExpectAway(inserted);
  EXPECT_EQ(server_.Ask(url_, "SELECT count(*) FROM wanserve.jobs"), "1");
  ExpectAway(store->Get("jobs/a").status());
  ASSERT_TRUE(store->CheckWritable().ok());
  EXPECT_TRUE(absl::IsNotFound(store->Get("jobs/a").status()));
  EXPECT_TRUE(Insert(*store, "jobs/a").ok());
}

TEST_F(PostgresJobStoreTest, AChangeThatWasRefusedIsReplacedByItsRepetition) {
  const auto store = Opened();
  StoredJob job = NewJob("jobs/a");
  job.job.mutable_request()->set_webhook_url("https://h/x");
  const JobAddition addition{job, {}, {NewEvent(1)}};
  ASSERT_TRUE(InsertAllInto(*store, std::span(&addition, 1)).ok());
  JobChange end{.job = "jobs/a", .row = job.job, .events = {NewEvent(2, "lost"), NewEvent(3)}};
  end.row->set_state(wan::v1::JOB_STATE_COMPLETED);
  end.events.back().mutable_completed();
  HoldCommits();
  absl::Notification ended;
  absl::Status applied;
  store->Apply(std::span(&end, 1), [&](const absl::Status& status) {
    applied = status;
    ended.Notify();
  });
  BreakHeldCommit();
  ended.WaitForNotification();
  ExpectAway(applied);
  EXPECT_THAT(*store->Events("jobs/a", 0, 10), SizeIs(3)) << "it was committed";
  end.events[0] = NewEvent(2, "repeated");
  ASSERT_TRUE(ApplyTo(*store, std::span(&end, 1)).ok());
  const auto events = store->Events("jobs/a", 0, 10);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_THAT(*events, SizeIs(3));
  EXPECT_EQ(events->at(1).stage_started().stage(), "repeated");
  EXPECT_THAT(*store->webhooks().Webhooks(0, 10), SizeIs(1)) << "its end is reported once";
}

// The event log merges the changes that were refused, and stores them together with new ones.
TEST_F(PostgresJobStoreTest, ARepeatedChangeAndTheNextOneAreStoredTogether) {
  const auto store = Opened();
  ASSERT_TRUE(Insert(*store, "jobs/a").ok());
  std::vector<JobChange> changes = {{.job = "jobs/a", .events = {NewEvent(2), NewEvent(3)}}};
  HoldCommits();
  absl::Notification ended;
  store->Apply(changes, [&](const absl::Status& status) {
    ExpectAway(status);
    ended.Notify();
  });
  BreakHeldCommit();
  ended.WaitForNotification();
  changes.push_back({.job = "jobs/a", .events = {NewEvent(4)}});
  changes.push_back({.job = "jobs/a", .events = {NewEvent(5)}});
  ASSERT_TRUE(ApplyTo(*store, changes).ok());
  const auto events = store->Events("jobs/a", 0, 10);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, SizeIs(5));
}

TEST_F(PostgresJobStoreTest, AHoleBetweenEventsIsRefused) {
  const auto store = Opened();
  ASSERT_TRUE(Insert(*store, "jobs/a").ok());
  EXPECT_EQ(Append(*store, "jobs/a", NewEvent(3)).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Append(*store, "jobs/a", NewEvent(2)).ok());
}

TEST_F(PostgresJobStoreTest, ChangesOfManyThreadsKeepTheirOrder) {
  const auto store = Opened();
  constexpr int kJobs = 8;
  constexpr int kEvents = 40;
  std::vector<std::thread> threads;
  for (int i = 0; i < kJobs; ++i) {
    threads.emplace_back([&store, name = absl::StrCat("jobs/", i)] {
      EXPECT_TRUE(Insert(*store, name).ok());
      std::vector<JobChange> changes;
      for (int sequence = 2; sequence <= kEvents; ++sequence) {
        changes.push_back({.job = name, .events = {NewEvent(sequence)}});
      }
      // None waits for the one before; the last one waits for all.
      for (size_t c = 0; c + 1 < changes.size(); ++c) {
        store->Apply(std::span(&changes[c], 1),
                     [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
      }
      EXPECT_TRUE(ApplyTo(*store, std::span(&changes.back(), 1)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kJobs; ++i) {
    EXPECT_THAT(*store->Events(absl::StrCat("jobs/", i), 0, 100), SizeIs(kEvents));
  }
}

TEST_F(PostgresJobStoreTest, ARefusedChangeDoesNotHarmThoseThatWaitWithIt) {
  const auto store = Opened();
  ASSERT_TRUE(Insert(*store, "jobs/a").ok());
  const std::vector<JobChange> changes = {{.job = "jobs/a", .events = {NewEvent(2)}},
                                          {.job = "jobs/a", .events = {NewEvent(3)}},
                                          {.job = "jobs/none", .events = {NewEvent(1)}},
                                          {.job = "jobs/a", .events = {NewEvent(4)}}};
  std::vector<absl::Status> results(changes.size());
  absl::Notification ended;
  const auto apply = [&](size_t i) {
    store->Apply(std::span(&changes[i], 1), [&, i](const absl::Status& status) {
      results[i] = status;
      if (i + 1 == changes.size()) ended.Notify();
    });
  };
  // While the commit of the first change waits, the others gather for the next transaction.
  HoldCommits();
  apply(0);
  AwaitAnswer(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event = 'SyncRep'",
      "1");
  for (size_t i = 1; i < changes.size(); ++i) apply(i);
  ReleaseCommits();
  ended.WaitForNotification();
  EXPECT_TRUE(results[1].ok()) << results[1];
  EXPECT_TRUE(absl::IsNotFound(results[2])) << results[2];
  EXPECT_TRUE(results[3].ok()) << results[3];
  EXPECT_THAT(*store->Events("jobs/a", 0, 10), SizeIs(4));
}

TEST_F(PostgresJobStoreTest, AStartDoesNotReadTheJobsThatHaveEnded) {
  auto store = Opened();
  ASSERT_TRUE(Insert(*store, "jobs/a").ok());
  server_.Execute(
      url_,
      "INSERT INTO wanserve.jobs (name, owner, request_digest, tied_to_caller, state, "
      "model, priority, create_time, end_time, ended, labels, job) SELECT 'jobs/e' || "
      "i, 'eve', '', false, 3, 'm', 0, i, i, i, '', '' FROM generate_series(1, 3000) i");
  server_.Execute(url_, "ANALYZE wanserve.jobs");
  const auto read = [this] {
    // A session adds its counts when it ends.
    AwaitAnswer(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
        "backend_type = 'client backend' AND pid <> pg_backend_pid()",
        "0");
    return std::stoi(server_.Ask(
        url_, "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'jobs_pkey'"));
  };
  store.reset();
  const int before = read();
  store = Opened();
  EXPECT_THAT(*store->Unfinished(), SizeIs(1));
  store.reset();
  EXPECT_LT(read() - before, 100);
}

TEST_F(PostgresJobStoreTest, ADamagedRowLosesOnlyItsJob) {
  std::vector<absl::Status> problems;
  auto opened = OpenPostgresJobStore(
      url_, [&](const absl::Status& problem) { problems.push_back(problem); }, clock_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  JobStore& store = **opened;
  ASSERT_TRUE(Insert(store, "jobs/a").ok());
  ASSERT_TRUE(Insert(store, "jobs/b").ok());
  server_.Execute(url_, "UPDATE wanserve.jobs SET job = '\\xff' WHERE name = 'jobs/a'");
  for (int i = 0; i < 2; ++i) {
    const absl::Status damaged = store.Get("jobs/a").status();
    EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReasonOf(damaged), kReasonJobDamaged);
    EXPECT_THAT(std::string(damaged.message()),
                AllOf(HasSubstr("its bytes are not a wan.v1.Job"), Not(HasSubstr("PostgreSQL"))));
  }
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(std::string(problems.front().message()), HasSubstr("PostgreSQL database test"));
  EXPECT_THAT(*store.Unfinished(), SizeIs(1));
  EXPECT_THAT(store.List({})->jobs, SizeIs(1));
  EXPECT_TRUE(absl::IsAlreadyExists(Insert(store, "jobs/a")));
}

class RefusedDatabaseTest : public PostgresJobStoreTest {
 protected:
  std::string Refused(absl::StatusCode code) {
    const auto opened = Open();
    EXPECT_EQ(opened.status().code(), code) << opened.status();
    EXPECT_EQ(ReasonOf(opened.status()), "") << "a server does not start so";
    return std::string(opened.status().message());
  }
};

TEST_F(RefusedDatabaseTest, ANewerSchema) {
  Opened().reset();
  server_.Execute(url_, "UPDATE wanserve.schema_info SET version = 99");
  EXPECT_TRUE(Open().ok()) << "a server that the schema still suits";
  server_.Execute(url_, "UPDATE wanserve.schema_info SET oldest_server = 98");
  EXPECT_THAT(Refused(absl::StatusCode::kFailedPrecondition),
              HasSubstr("the schema has version 99 and needs a server that knows version 98, but "
                        "this server knows versions up to 1; start the newer server"));
}

TEST_F(RefusedDatabaseTest, AServerThatDoesNotAcceptTheDatabaseDoesNotCutOffAnother) {
  const auto first = Opened();
  ASSERT_TRUE(Insert(*first, "jobs/a").ok());
  BreakConnections();
  const auto refuse = [](const std::string& id) {
    return absl::FailedPreconditionError("the folder belongs to another than " + id);
  };
  const auto second = OpenPostgresJobStore(url_, nullptr, clock_, refuse);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  EXPECT_TRUE(Insert(*first, "jobs/b").ok());
}

TEST_F(RefusedDatabaseTest, NoRights) {
  server_.Execute(url_, "DROP ROLE IF EXISTS guest");
  server_.Execute(url_, "CREATE ROLE guest LOGIN");
  std::string as_guest = url_;
  as_guest.replace(as_guest.find("wan@"), 3, "guest");
  const auto opened = OpenPostgresJobStore(as_guest, nullptr, clock_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kPermissionDenied) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("must own the schema wanserve"));
}

// An administrator may make the schema for a role that may not make one.
TEST_F(PostgresJobStoreTest, TheOwnerOfTheSchemaNeedsNoRightToCreateOne) {
  server_.Execute(url_, "DROP ROLE IF EXISTS keeper");
  server_.Execute(url_, "CREATE ROLE keeper LOGIN");
  server_.Execute(url_, "CREATE SCHEMA wanserve AUTHORIZATION keeper");
  std::string as_keeper = url_;
  as_keeper.replace(as_keeper.find("wan@"), 3, "keeper");
  for (int start = 0; start < 2; ++start) {
    const auto opened = OpenPostgresJobStore(as_keeper, nullptr, clock_);
    EXPECT_TRUE(opened.ok()) << opened.status();
  }
}

TEST_F(RefusedDatabaseTest, AnotherEncoding) {
  server_.Execute(url_, "DROP DATABASE IF EXISTS latin");
  server_.Execute(url_, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
  std::string latin = url_;
  const size_t begin = latin.find("@/") + 2;
  latin.replace(begin, latin.find('?') - begin, "latin");
  const auto opened = OpenPostgresJobStore(latin, nullptr, clock_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("has the encoding LATIN1"));
}

TEST_F(RefusedDatabaseTest, NoSuchDatabaseAndNoSuchServer) {
  std::string other = url_;
  other.insert(other.find('?'), "none");
  const auto opened = OpenPostgresJobStore(other, nullptr, clock_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("does not exist"));
  const auto nobody = OpenPostgresJobStore("postgresql://wan@127.0.0.1:1/wan", nullptr, clock_);
  EXPECT_EQ(nobody.status().code(), absl::StatusCode::kUnavailable) << nobody.status();
  EXPECT_THAT(std::string(nobody.status().message()),
              AllOf(HasSubstr("PostgreSQL database wan on 127.0.0.1: connection to server at"),
                    Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace wan::server
