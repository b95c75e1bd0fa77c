// Writing, showing, following; and a store that refuses.
#include "server/watch/event_log.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite_job_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A store that refuses writes when told, of all jobs or of one, and can be held in the middle of a
// write.
class FaultyStore final : public JobStore {
 public:
  FaultyStore() : store_(*OpenInMemoryJobStore()) {}

  // What is about a job, or begins with an event of a stage; "*": all; "": nothing.
  void Refuse(const std::string& job_or_stage) {
    absl::MutexLock lock(&mutex_);
    refused_ = job_or_stage;
  }
  void Hold(bool hold) {
    absl::MutexLock lock(&mutex_);
    held_ = hold;
  }
  int applies() const { return applies_; }
  // The most changes of one write.
  int largest_apply() const { return largest_apply_; }

  void Apply(std::span<const JobChange> changes, Done done) override {
    ++applies_;
    largest_apply_ = std::max<int>(largest_apply_, static_cast<int>(changes.size()));
    {
      absl::MutexLock lock(&mutex_);
      const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_; };
      mutex_.Await(absl::Condition(&free));
      for (const JobChange& change : changes) {
        const bool stage =
            !change.events.empty() && change.events[0].stage_started().stage() == refused_;
        if (refused_ == "*" || refused_ == change.job || (stage && !refused_.empty())) {
          done(absl::ResourceExhaustedError("disk full"));
          return;
        }
      }
    }
    store_->Apply(changes, std::move(done));
  }
  void InsertAll(std::span<const JobAddition> additions, Done done) override {
    store_->InsertAll(additions, std::move(done));
  }
  void Remove(std::string_view job, Done done) override { store_->Remove(job, std::move(done)); }
  using JobStore::Apply;
  absl::StatusOr<StoredJob> Get(std::string_view job) override { return store_->Get(job); }
  absl::StatusOr<StoredJob> FindByRequestId(std::string_view owner, std::string_view id) override {
    return store_->FindByRequestId(owner, id);
  }
  absl::StatusOr<JobPage> List(const JobQuery& query) override { return store_->List(query); }
  absl::StatusOr<std::string> OwnerOf(std::string_view job) override {
    return store_->OwnerOf(job);
  }
  absl::StatusOr<std::string> SecretKey() override { return store_->SecretKey(); }
  absl::Status CheckWritable() override { return store_->CheckWritable(); }
  absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> TotalsOfEnded(
      const std::optional<std::string>& owner) override {
    return store_->TotalsOfEnded(owner);
  }
  absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) override {
    return store_->OldestEnded(query);
  }
  absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) override {
    return store_->UseOfRemoved(since);
  }
  absl::StatusOr<bool> Vacuum() override { return store_->Vacuum(); }
  absl::StatusOr<std::vector<JobFile>> Files(std::string_view job) override {
    return store_->Files(job);
  }
  absl::StatusOr<std::vector<StoredJob>> Unfinished() override { return store_->Unfinished(); }
  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override {
    return store_->Events(job, after, limit);
  }
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override {
    return store_->Report(job);
  }
  absl::StatusOr<JobInputs> Inputs(std::string_view job) override { return store_->Inputs(job); }
  WebhookOutbox& webhooks() override { return store_->webhooks(); }

 private:
  const std::unique_ptr<JobStore> store_;
  absl::Mutex mutex_;
  std::string refused_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> applies_ = 0;
  std::atomic<int> largest_apply_ = 0;
};

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() { Reopen(); }

  void Reopen() {
    log_.reset();
    log_ = std::make_unique<EventLog>(store_, clock_, [this](const absl::Status&) { ++problems_; });
  }

  // A job with one event, the log of which is open.
  void AddJob(const std::string& name) {
    StoredJob stored;
    stored.job.set_name(name);
    stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    wan::v1::Event first;
    first.set_sequence(1);
    first.mutable_stage_started()->set_stage("first");
    ASSERT_TRUE(InsertInto(store_, stored, "", std::span(&first, 1)).ok());
    log_->Open(name, 1);
  }

  static JobChange Change(const std::string& job, std::initializer_list<const char*> stages) {
    JobChange change;
    change.job = job;
    for (const char* stage : stages) {
      change.events.emplace_back().mutable_stage_started()->set_stage(stage);
    }
    return change;
  }

  static JobChange End(const std::string& job) {
    JobChange change = Change(job, {"last"});
    change.row.emplace().set_name(job);
    change.row->set_state(wan::v1::JOB_STATE_COMPLETED);
    return change;
  }

  std::vector<std::string> Stored(const std::string& job) {
    return Brief(*store_.Events(job, 0, 100));
  }

  // What a cursor can read without waiting.
  static std::vector<std::string> Drain(EventCursor& cursor) {
    std::vector<std::string> texts;
    wan::v1::Event event;
    while (cursor.TryNext(&event) == EventCursor::Next::kEvent) texts.push_back(Brief(event));
    return texts;
  }

  fakes::FakeClock clock_;
  FaultyStore store_;
  std::atomic<int> problems_ = 0;
  std::unique_ptr<EventLog> log_;
};

TEST_F(EventLogTest, GivesSequenceTimeAndName) {
  AddJob("jobs/a");
  clock_.Advance(absl::Seconds(5));
  log_->Append(Change("jobs/a", {"x", "y"}));
  ASSERT_TRUE(log_->Flush().ok());
  const auto events = store_.Events("jobs/a", 1, 10);
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ(events->at(1).sequence(), 3);
  EXPECT_EQ(events->at(1).job(), "jobs/a");
  EXPECT_EQ(events->at(1).time().seconds(), absl::ToUnixSeconds(clock_.Now()));
  EXPECT_EQ(log_->LastSequence("jobs/a"), 3);
}

TEST_F(EventLogTest, ShowsOnlyWhatIsStored) {
  AddJob("jobs/a");
  absl::Notification notified;
  auto cursor = log_->Watch("jobs/a", 1, [&] { notified.Notify(); });
  wan::v1::Event event;
  ASSERT_EQ(cursor->TryNext(&event), EventCursor::Next::kPending);
  store_.Hold(true);
  log_->Append(Change("jobs/a", {"x"}));
  while (store_.applies() == 0) std::this_thread::yield();  // the writer stands in the write
  EXPECT_EQ(cursor->TryNext(&event), EventCursor::Next::kPending);
  EXPECT_EQ(log_->LastSequence("jobs/a"), 1);
  EXPECT_FALSE(notified.HasBeenNotified());
  store_.Hold(false);
  notified.WaitForNotification();
  EXPECT_EQ(cursor->TryNext(&event), EventCursor::Next::kEvent);
}

TEST_F(EventLogTest, AppendNeverWaitsForTheStoreAndWritesAreGrouped) {
  AddJob("jobs/a");
  store_.Hold(true);
  log_->Append(Change("jobs/a", {"x"}));
  while (store_.applies() == 0) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) log_->Append(Change("jobs/a", {"y"}));
  store_.Hold(false);
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_EQ(store_.Events("jobs/a", 0, 2000)->size(), 1002u);
  // The store is locked while it takes a transaction, so that each has an end.
  EXPECT_EQ(store_.largest_apply(), 64);
  EXPECT_EQ(store_.applies(), 1 + (1000 + 63) / 64);
}

TEST_F(EventLogTest, ATransactionEndsWhenItsBytesAreMany) {
  AddJob("jobs/a");
  store_.Hold(true);
  log_->Append(Change("jobs/a", {"x"}));
  while (store_.applies() == 0) std::this_thread::yield();
  const std::string large(600'000, 'y');
  for (int i = 0; i < 4; ++i) log_->Append(Change("jobs/a", {large.c_str()}));
  store_.Hold(false);
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_EQ(store_.Events("jobs/a", 0, 10)->size(), 6u);
  EXPECT_EQ(store_.applies(), 1 + 4);
}

TEST_F(EventLogTest, NothingOvertakesARefusedChangeIntoALaterTransaction) {
  AddJob("jobs/a");
  AddJob("jobs/b");
  store_.Hold(true);
  log_->Append(Change("jobs/b", {"x"}));
  while (store_.applies() == 0) std::this_thread::yield();
  log_->Append(Change("jobs/a", {"refused"}));
  for (int i = 0; i < 100; ++i) log_->Append(Change("jobs/b", {"y"}));
  log_->Append(Change("jobs/a", {"behind"}));
  store_.Refuse("refused");
  store_.Hold(false);
  EXPECT_FALSE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first"));
  EXPECT_EQ(store_.Events("jobs/b", 0, 200)->size(), 102u);
  store_.Refuse("");
  clock_.Advance(absl::Seconds(1));
  log_->Append(Change("jobs/b", {"z"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first", "start refused", "start behind"));
}

TEST_F(EventLogTest, NotifiesOncePerPending) {
  AddJob("jobs/a");
  std::atomic<int> notified = 0;
  auto cursor = log_->Watch("jobs/a", 1, [&] { ++notified; });
  log_->Append(Change("jobs/a", {"x"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_EQ(notified, 0);  // nobody waits
  EXPECT_THAT(Drain(*cursor), ElementsAre("start x"));
  log_->Append(Change("jobs/a", {"y"}));
  log_->Append(Change("jobs/a", {"z"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_EQ(notified, 1);
  EXPECT_THAT(Drain(*cursor), ElementsAre("start y", "start z"));
}

TEST_F(EventLogTest, ReplaysStoredEventsAndGoesOnWithLiveOnes) {
  AddJob("jobs/a");
  for (int i = 2; i <= 600; ++i) log_->Append(Change("jobs/a", {"old"}));  // several pages
  ASSERT_TRUE(log_->Flush().ok());
  Reopen();
  log_->Open("jobs/a", 600);
  auto cursor = log_->Watch("jobs/a", 0, [] {});
  wan::v1::Event event;
  for (int i = 1; i <= 300; ++i) ASSERT_EQ(cursor->TryNext(&event), EventCursor::Next::kEvent);
  log_->Append(Change("jobs/a", {"new"}));
  ASSERT_TRUE(log_->Flush().ok());
  int64_t sequence = 300;
  while (cursor->TryNext(&event) == EventCursor::Next::kEvent) {
    EXPECT_EQ(event.sequence(), ++sequence);
  }
  EXPECT_EQ(sequence, 601);
  EXPECT_EQ(Brief(event), "start new");
}

TEST_F(EventLogTest, WhatIsStoredAndNotShownYetIsNotReadFromTheStore) {
  AddJob("jobs/a");
  JobChange stored = Change("jobs/a", {"x"});  // as the writer has it between storing and showing
  stored.events[0].set_sequence(2);
  ASSERT_TRUE(ApplyTo(store_, std::span(&stored, 1)).ok());
  EXPECT_THAT(Drain(*log_->Watch("jobs/a", 0, [] {})), ElementsAre("start first"));
}

TEST_F(EventLogTest, EndsAfterTheLastEvent) {
  AddJob("jobs/a");
  BlockingReader reader(*log_, "jobs/a");
  log_->Append(End("jobs/a"));
  log_->Append(Change("jobs/a", {"too late"}));
  EXPECT_THAT(Brief(reader.Rest()), ElementsAre("start first", "start last"));
  EXPECT_TRUE(reader.cursor().status().ok());
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_EQ(log_->LastSequence("jobs/a"), 0);  // not open any more
  EXPECT_THAT(Brief(BlockingReader(*log_, "jobs/a", 1).Rest()), ElementsAre("start last"));
  EXPECT_THAT(Brief(BlockingReader(*log_, "jobs/a", 2).Rest()), IsEmpty());
  EXPECT_THAT(Brief(BlockingReader(*log_, "jobs/a", std::numeric_limits<int64_t>::max()).Rest()),
              IsEmpty());
}

TEST_F(EventLogTest, PreviewReachesWhoWatchesAndTheSlowSeeTheLatest) {
  AddJob("jobs/a");
  auto slow = log_->Watch("jobs/a", 1, [] {});
  BlockingReader quick(*log_, "jobs/a", 1);
  for (int step = 1; step <= 3; ++step) {
    wan::v1::Event preview;
    preview.mutable_preview()->set_step(step);
    log_->Broadcast("jobs/a", std::move(preview));
    const std::optional<wan::v1::Event> seen = quick.Next();
    EXPECT_EQ(Brief(*seen), absl::StrCat("preview ", step));
    EXPECT_EQ(seen->sequence(), 0);
  }
  EXPECT_THAT(Drain(*slow), ElementsAre("preview 3"));
  EXPECT_THAT(Drain(*log_->Watch("jobs/a", 1, [] {})), IsEmpty());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first"));
}

TEST_F(EventLogTest, RefusedWritesAreShownOnceTheyAreStored) {
  AddJob("jobs/a");
  store_.Refuse("*");
  bool stored = false;
  auto cursor = log_->Watch("jobs/a", 1, [] {});
  log_->Append(Change("jobs/a", {"x"}), [&] { stored = true; });
  EXPECT_EQ(log_->Flush().code(), absl::StatusCode::kResourceExhausted);
  log_->Append(End("jobs/a"));
  EXPECT_FALSE(log_->Flush().ok());
  EXPECT_THAT(Drain(*cursor), IsEmpty());
  EXPECT_THAT(Drain(*log_->Watch("jobs/a", 0, [] {})), ElementsAre("start first"));
  EXPECT_EQ(log_->LastSequence("jobs/a"), 1);
  EXPECT_EQ(problems_, 1);  // not one for each retry
  EXPECT_FALSE(stored);
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first"));

  BlockingReader reader(*log_, "jobs/a", 1);
  store_.Refuse("");
  while (Stored("jobs/a").size() < 3) clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Brief(reader.Rest()), ElementsAre("start x", "start last"));
  EXPECT_TRUE(stored);
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first", "start x", "start last"));
  while (log_->LastSequence("jobs/a") != 0) std::this_thread::yield();
}

TEST_F(EventLogTest, PreviewsAreShownWhileTheStoreRefuses) {
  AddJob("jobs/a");
  store_.Refuse("*");
  log_->Append(Change("jobs/a", {"x"}));
  EXPECT_FALSE(log_->Flush().ok());
  BlockingReader reader(*log_, "jobs/a", 1);
  wan::v1::Event preview;
  preview.mutable_preview()->set_step(1);
  log_->Broadcast("jobs/a", preview);
  EXPECT_EQ(Brief(*reader.Next()), "preview 1");
}

TEST_F(EventLogTest, WhoeverIsToldOfAStoredEndFindsItStored) {
  AddJob("jobs/a");
  bool stored = false;
  BlockingReader reader(*log_, "jobs/a", 1);
  log_->Append(End("jobs/a"), [&] { stored = true; });
  reader.Rest();
  EXPECT_TRUE(stored);
}

// The wait for one job's changes takes no thread, and is told of that job alone.
TEST_F(EventLogTest, FlushOfAJobEndsByACallback) {
  AddJob("jobs/a");
  AddJob("jobs/b");
  std::vector<std::string> told;
  const auto flush = [&](const std::string& job) {
    log_->Flush(job, [&told, job](const absl::Status& status) {
      told.push_back(absl::StrCat(job, " ", status.message()));
    });
  };
  flush("jobs/a");
  flush("jobs/unknown");
  EXPECT_THAT(told, ElementsAre("jobs/a ", "jobs/unknown ")) << "nothing to wait for";
  told.clear();
  store_.Refuse("jobs/b");
  store_.Hold(true);
  log_->Append(Change("jobs/a", {"x"}));
  log_->Append(Change("jobs/b", {"x"}));
  flush("jobs/a");
  flush("jobs/b");
  while (store_.applies() == 0) std::this_thread::yield();
  EXPECT_THAT(told, IsEmpty());
  store_.Hold(false);
  log_->Flush().IgnoreError();
  log_->Append(Change("jobs/a", {"y"}));
  log_->Flush().IgnoreError();  // the pass before has ended
  EXPECT_THAT(told, ElementsAre("jobs/a ", "jobs/b disk full"));
  flush("jobs/b");
  EXPECT_THAT(told, SizeIs(3)) << "told at once, not after the next attempt";
  EXPECT_EQ(told.back(), "jobs/b disk full");
}

// However much is refused, a job keeps one change: of its places in the queue the last.
TEST_F(EventLogTest, WhatIsRefusedIsMerged) {
  AddJob("jobs/a");
  store_.Refuse("*");
  for (int i = 0; i < 100; ++i) {
    JobChange change{.job = "jobs/a"};
    change.row.emplace().set_name("jobs/a");
    change.row->set_state(wan::v1::JOB_STATE_QUEUED);
    change.row->mutable_request()->set_priority(i);
    change.events.emplace_back().mutable_queued()->set_position(i);
    log_->Append(std::move(change));
    EXPECT_FALSE(log_->Flush().ok());
  }
  log_->Append(Change("jobs/a", {"x"}));
  EXPECT_FALSE(log_->Flush().ok());
  store_.Refuse("");
  log_->Append(Change("jobs/a", {"y"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first", "queued 99", "start x", "start y"));
  const auto events = store_.Events("jobs/a", 0, 10);
  for (size_t i = 0; i < events->size(); ++i) {
    EXPECT_EQ(events->at(i).sequence(), static_cast<int64_t>(i) + 1) << "without a hole";
  }
  EXPECT_EQ(store_.Get("jobs/a")->job.request().priority(), 99);
}

TEST_F(EventLogTest, OneJobThatCannotBeWrittenHoldsUpNoOther) {
  AddJob("jobs/a");
  AddJob("jobs/b");
  store_.Refuse("jobs/a");
  log_->Append(Change("jobs/a", {"x"}));
  log_->Append(Change("jobs/b", {"x"}));
  log_->Append(Change("jobs/a", {"y"}));
  EXPECT_FALSE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first"));
  EXPECT_THAT(Stored("jobs/b"), ElementsAre("start first", "start x"));
  store_.Refuse("");
  log_->Append(Change("jobs/b", {"z"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first", "start x", "start y"));
}

TEST_F(EventLogTest, NothingOfAJobOvertakesWhatWasRefused) {
  AddJob("jobs/a");
  store_.Refuse("x");
  store_.Hold(true);  // so that both are written at once
  log_->Append(Change("jobs/a", {"other"}));
  while (store_.applies() == 0) std::this_thread::yield();
  log_->Append(Change("jobs/a", {"x"}));
  log_->Append(Change("jobs/a", {"y"}));
  store_.Hold(false);
  EXPECT_FALSE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first", "start other"));
  store_.Refuse("");
  log_->Append(Change("jobs/a", {"z"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Stored("jobs/a"),
              ElementsAre("start first", "start other", "start x", "start y", "start z"));
}

TEST_F(EventLogTest, DestructorWritesWhatIsPending) {
  AddJob("jobs/a");
  store_.Refuse("*");
  log_->Append(Change("jobs/a", {"x"}));
  EXPECT_FALSE(log_->Flush().ok());
  store_.Refuse("");
  log_.reset();
  EXPECT_THAT(Stored("jobs/a"), ElementsAre("start first", "start x"));
}

TEST_F(EventLogTest, CallbackMayDestroyItsCursorAndFlush) {
  AddJob("jobs/a");
  absl::Notification done;
  std::unique_ptr<EventCursor> cursor;
  cursor = log_->Watch("jobs/a", 1, [&] {
    log_->Flush().IgnoreError();
    cursor.reset();
    done.Notify();
  });
  wan::v1::Event event;
  ASSERT_EQ(cursor->TryNext(&event), EventCursor::Next::kPending);
  log_->Append(Change("jobs/a", {"x"}));
  done.WaitForNotification();
  EXPECT_TRUE(log_->Flush().ok());
}

TEST_F(EventLogTest, CallbackMayDestroyAnotherCursorThatWaitsToo) {
  AddJob("jobs/a");
  std::unique_ptr<EventCursor> first;
  std::unique_ptr<EventCursor> second;
  std::atomic<int> called = 0;
  first = log_->Watch("jobs/a", 1, [&] {
    ++called;
    second.reset();
  });
  second = log_->Watch("jobs/a", 1, [&] { ++called; });
  wan::v1::Event event;
  ASSERT_EQ(first->TryNext(&event), EventCursor::Next::kPending);
  ASSERT_EQ(second->TryNext(&event), EventCursor::Next::kPending);
  log_->Append(Change("jobs/a", {"x"}));
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_EQ(called, 1);
}

TEST_F(EventLogTest, DestructorOfACursorWaitsForItsCallback) {
  AddJob("jobs/a");
  absl::Notification inside;
  absl::Notification destroying;
  std::atomic<bool> left = false;
  auto cursor = log_->Watch("jobs/a", 1, [&] {
    inside.Notify();
    destroying.WaitForNotification();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // room for a destructor in a hurry
    left = true;
  });
  wan::v1::Event event;
  ASSERT_EQ(cursor->TryNext(&event), EventCursor::Next::kPending);
  log_->Append(Change("jobs/a", {"x"}));
  inside.WaitForNotification();
  destroying.Notify();
  cursor.reset();
  EXPECT_TRUE(left);
}

TEST_F(EventLogTest, WatchersComeAndGoWhileEventsFlow) {
  AddJob("jobs/a");
  constexpr int kEvents = 300;
  std::vector<std::thread> watchers;
  for (int i = 0; i < 8; ++i) {
    watchers.emplace_back([&, i] {
      if (i % 2 == 0) {
        EXPECT_THAT(Brief(BlockingReader(*log_, "jobs/a", i).Rest()), SizeIs(kEvents + 2 - i));
        return;
      }
      for (int round = 0; round < 50; ++round) {
        BlockingReader reader(*log_, "jobs/a");
        for (int read = 0; read < round; ++read) {
          if (!reader.Next().has_value()) break;
        }
      }
    });
  }
  for (int i = 0; i < kEvents; ++i) log_->Append(Change("jobs/a", {"x"}));
  log_->Append(End("jobs/a"));
  for (std::thread& watcher : watchers) watcher.join();
}

TEST_F(EventLogTest, CloseEndsWhoWaits) {
  AddJob("jobs/a");
  BlockingReader reader(*log_, "jobs/a");
  reader.Next();
  std::thread waiter([&] {
    EXPECT_FALSE(reader.Next().has_value());
    EXPECT_EQ(reader.cursor().status().code(), absl::StatusCode::kUnavailable);
  });
  log_->Close();
  waiter.join();
}

}  // namespace
}  // namespace wan::server
