// The order of the queue between principals: the queue alone, then the service around it.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_queue.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;

class FairQueueTest : public testing::Test {
 protected:
  void Add(const std::string& job, const std::string& owner,
           std::optional<absl::Duration> estimate = std::nullopt, int priority = 0) {
    QueueEntry entry{job, "m", priority, ++age_};
    entry.estimate = estimate;
    entry.owner = owner;
    queue_.Add(entry);
  }

  std::vector<std::string> Order() {
    std::vector<std::string> names;
    queue_.Visit(JobQueue::Front(), queue_.size(),
                 [&](QueueEntry& entry, const QueueSum&) { names.push_back(entry.job); });
    return names;
  }

  std::map<std::string, absl::Duration> used_;
  uint64_t age_ = 0;
  JobQueue queue_{1'000, [this](const std::string& owner) { return used_[owner]; }};
};

TEST_F(FairQueueTest, PrincipalsTakeTurnsHoweverManyJobsEachHas) {
  for (int i = 1; i <= 4; ++i) Add(absl::StrCat("a", i), "alice");
  Add("b1", "bob");
  Add("b2", "bob");
  Add("c1", "carol");
  EXPECT_THAT(Order(), ElementsAre("a1", "b1", "c1", "a2", "b2", "a3", "a4"));
  EXPECT_EQ(queue_.Position("b1"), 1);
  EXPECT_EQ(queue_.Position("a4"), 6);
}

TEST_F(FairQueueTest, WhoHasUsedLessComesFirst) {
  used_["alice"] = absl::Seconds(100);
  used_["bob"] = absl::Seconds(30);
  Add("a1", "alice", absl::Seconds(10));
  for (int i = 1; i <= 4; ++i) Add(absl::StrCat("b", i), "bob", absl::Seconds(30));
  // bob has used 30, 60 and 90 seconds when his jobs before a1 begin.
  EXPECT_THAT(Order(), ElementsAre("b1", "b2", "b3", "a1", "b4"));
  used_["bob"] = absl::Seconds(200);
  EXPECT_EQ(queue_.Position("a1"), 3);  // what was used is read when RefreshUse is called
  queue_.RefreshUse();
  EXPECT_EQ(queue_.Position("a1"), 0);
}

TEST_F(FairQueueTest, TurnsAreOfDeviceTimeAndNotOfJobs) {
  for (int i = 1; i <= 3; ++i) Add(absl::StrCat("long", i), "alice", absl::Seconds(60));
  for (int i = 1; i <= 4; ++i) Add(absl::StrCat("short", i), "bob", absl::Seconds(20));
  EXPECT_THAT(Order(),
              ElementsAre("long1", "short1", "short2", "short3", "long2", "short4", "long3"));
}

TEST_F(FairQueueTest, PriorityComesBeforeFairnessAndCountsAsUse) {
  used_["alice"] = absl::Seconds(15);
  Add("a", "alice", absl::Seconds(10));
  Add("b", "bob", absl::Seconds(10));
  Add("urgent", "bob", absl::Seconds(20), /*priority=*/1);
  // Without the urgent job bob would be first; with it he has used more than alice.
  EXPECT_THAT(Order(), ElementsAre("urgent", "a", "b"));
  queue_.Remove("urgent");
  EXPECT_THAT(Order(), ElementsAre("b", "a"));
}

TEST_F(FairQueueTest, OthersGoAheadOfAPrincipalWhoseModelIsNotThere) {
  QueueEntry waiting{"a1", "not loaded", 0, ++age_};
  waiting.owner = "alice";
  queue_.Add(waiting);
  Add("a2", "alice");
  used_["bob"] = absl::Seconds(100);
  Add("b1", "bob");
  const auto loaded = [](const std::string& model) { return model == "m"; };
  EXPECT_EQ(queue_.TakeFirst(loaded)->job, "a2");
  EXPECT_EQ(queue_.TakeFirst(loaded)->job, "b1");
  EXPECT_FALSE(queue_.TakeFirst(loaded).has_value());
}

TEST_F(FairQueueTest, ANewJobIsPromisedThePlaceThatItGets) {
  used_["alice"] = absl::Seconds(50);
  for (int i = 1; i <= 3; ++i) Add(absl::StrCat("a", i), "alice", absl::Seconds(10));
  for (int i = 1; i <= 9; ++i) Add(absl::StrCat("b", i), "bob", absl::Seconds(10));
  for (const std::string owner : {"alice", "bob", "carol"}) {
    for (const int priority : {-1, 0, 1}) {
      const int promised = queue_.BeforeNew(owner, priority).jobs;
      Add("new", owner, absl::Seconds(10), priority);
      EXPECT_EQ(queue_.Position("new"), promised) << owner << " " << priority;
      queue_.Remove("new");
    }
  }
}

// Ten thousand jobs of 1,000 principals: without an index every call looks at all of these.
TEST_F(FairQueueTest, ACallLooksAtFewOfTheManyPrincipalsThatWait) {
  constexpr int kPrincipals = 1'000;
  // A red-black tree is at most twice as high as the logarithm of its size, and a search goes down
  // two paths.
  constexpr int64_t kFew = 40;
  const auto looked_at = [&](const auto& call) {
    const int64_t before = queue_.principals_looked_at();
    call();
    return queue_.principals_looked_at() - before;
  };
  int64_t most = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kPrincipals; ++i) {
      most = std::max(most, looked_at([&] {
                        Add(absl::StrCat("job ", i, " ", round), absl::StrCat("owner ", i),
                            absl::Seconds(10));
                      }));
    }
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(most, kFew);
  EXPECT_LE(looked_at([&] { queue_.BeforeNew("owner 0", 0); }), kFew);
  EXPECT_LE(looked_at([&] { queue_.BeforeNew("somebody else", 1); }), kFew);
  EXPECT_LE(looked_at([&] { EXPECT_EQ(queue_.Position("job 999 9"), 9'999); }), kFew);
  // The others have jobs on both sides of the place in between.
  EXPECT_LE(looked_at([&] { EXPECT_EQ(queue_.Position("job 500 0"), 500); }), kPrincipals + kFew);
  EXPECT_LE(looked_at([&] { queue_.BeforeNew("somebody else", 0); }), kPrincipals + kFew);
  for (int i = 0; i < kPrincipals; ++i) {
    for (int round = 1; round < 10; ++round) queue_.Remove(absl::StrCat("job ", i, " ", round));
  }
  EXPECT_LE(looked_at([&] { EXPECT_EQ(queue_.Position("job 500 0"), 500); }), kFew);
  int visited = 0;
  int64_t walks = 0;
  std::optional<JobQueue::Place> place = JobQueue::Front();
  const int64_t walked = looked_at([&] {
    for (; place.has_value(); ++walks) {
      place = queue_.Visit(*place, 64, [&](QueueEntry& entry, const QueueSum& before) {
        EXPECT_EQ(before.jobs, visited++);
        entry.estimate = absl::Seconds(20);
      });
    }
  });
  EXPECT_EQ(visited, kPrincipals);
  // Each is looked at when its turn comes; a walk begins with a search and may end with one more.
  EXPECT_LE(walked, kPrincipals + walks * (kFew + 1));
}

// The queue beside one that looks for the next job anew each time, through thousands of changes.
TEST_F(FairQueueTest, PositionsAndSumsAreThoseOfTheOrderInWhichJobsAreTaken) {
  std::mt19937 random(1);
  const auto up_to = [&](int most) { return static_cast<int>(random() % most); };
  std::vector<QueueEntry> reference;
  for (int i = 0; i < 5; ++i) used_[absl::StrCat("owner ", i)] = absl::Seconds(up_to(500));
  for (int i = 0; i < 400; ++i) {
    QueueEntry entry{absl::StrCat("job ", i), absl::StrCat("model ", up_to(2)), up_to(3), ++age_};
    entry.owner = absl::StrCat("owner ", up_to(5));
    if (up_to(3) != 0) entry.estimate = absl::Milliseconds(up_to(100'000));
    queue_.Add(entry);
    reference.push_back(entry);
    if (up_to(3) == 0) {
      const auto gone = reference.begin() + up_to(static_cast<int>(reference.size()));
      queue_.Remove(gone->job);
      reference.erase(gone);
    }
    if (up_to(10) != 0) continue;
    used_[absl::StrCat("owner ", up_to(5))] += absl::Seconds(up_to(100));
    queue_.RefreshUse();
  }
  queue_.RefreshUse();

  // The order by its definition.
  std::map<std::string, absl::Duration> used = used_;
  std::vector<QueueEntry> left = reference;
  std::vector<std::string> expected;
  QueueSum before;
  while (!left.empty()) {
    const auto next = std::min_element(left.begin(), left.end(), [&](const auto& a, const auto& b) {
      return std::tuple(-a.priority, used[a.owner], a.age) <
             std::tuple(-b.priority, used[b.owner], b.age);
    });
    const auto told = queue_.Before(next->job);
    ASSERT_TRUE(told.has_value());
    ASSERT_EQ(told->jobs, before.jobs) << next->job;
    ASSERT_EQ(told->unknown, before.unknown) << next->job;
    ASSERT_EQ(told->estimate, before.estimate) << next->job;
    const QueueSum own = internal::SumOf(*next);
    used[next->owner] += own.use();
    before += own;
    expected.push_back(next->job);
    left.erase(next);
  }
  EXPECT_EQ(Order(), expected);

  // All are estimated anew, in pieces, each once.
  std::optional<JobQueue::Place> place = JobQueue::Front();
  int visited = 0;
  while (place.has_value()) {
    place = queue_.Visit(*place, 64, [&](QueueEntry& entry, const QueueSum& sum) {
      EXPECT_EQ(sum.jobs, visited);
      EXPECT_EQ(sum.estimate, visited * absl::Seconds(1));
      entry.estimate = absl::Seconds(1);
      ++visited;
    });
  }
  EXPECT_EQ(visited, static_cast<int>(reference.size()));

  // They are taken in the order of a walk, if their owners are charged for them meanwhile.
  for (const std::string& job : Order()) {
    ASSERT_EQ(queue_.Position(job), 0);
    const auto taken = queue_.TakeFirst([](const std::string&) { return true; });
    ASSERT_EQ(taken->job, job);
    used_[taken->owner] += absl::Seconds(1);
    queue_.RefreshUse();
  }
  EXPECT_EQ(queue_.size(), 0);
}

class FairServiceTest : public ServiceTest {
 protected:
  std::string CreateFor(const std::string& owner, const std::string& prompt = "a cat") {
    const auto created = calls().Create(Request(prompt), /*tied_to_caller=*/false, owner);
    EXPECT_TRUE(created.ok()) << created.status();
    return created->job.name();
  }
  std::vector<std::string> Prompts() const {
    std::vector<std::string> prompts;
    for (const GenerationRequest& request : engine_->Generated()) prompts.push_back(request.prompt);
    return prompts;
  }
};

TEST_F(FairServiceTest, AThousandJobsOfOneDoNotBlockTheOneOfAnother) {
  options_.queue_capacity = 2'000;
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(1));
  engine_->Hold("T5_Encoding");
  const std::string first = CreateFor("alice", "first");
  engine_->AwaitHeld("T5_Encoding");
  std::string last;
  for (int i = 0; i < 1'000; ++i) last = CreateFor("alice");
  EXPECT_EQ(service_
                ->Quote(
                    [] {
                      wan::v1::QuoteRequest quote;
                      *quote.mutable_request() = Request();
                      return quote;
                    }(),
                    {"bob"})
                ->jobs_ahead(),
            0);
  const std::string bobs = CreateFor("bob", "of bob");
  EXPECT_EQ(Get(bobs).queue_position(), 0);
  EXPECT_EQ(Get(last).queue_position(), 1'000);
  engine_->Release("T5_Encoding");
  RunToEnd(bobs);
  EXPECT_EQ(Prompts()[1], "of bob");
}

TEST_F(FairServiceTest, WhatWasUsedIsSettledWithWhatAJobTook) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(100));
  const std::string long_one = CreateFor("alice");
  RunToEnd(long_one);
  EXPECT_EQ(Get(long_one).device_seconds(), 300);
  engine_->TakeTime("Step_Inference", absl::Seconds(10));
  RunToEnd(CreateFor("bob"));

  engine_->Hold("T5_Encoding");
  CreateFor("carol");
  engine_->AwaitHeld("T5_Encoding");
  const std::string alices = CreateFor("alice", "of alice");
  const std::string bobs = CreateFor("bob", "of bob");
  EXPECT_EQ(Get(bobs).queue_position(), 0);
  EXPECT_EQ(Get(alices).queue_position(), 1);
  engine_->Release("T5_Encoding");
  RunToEnd(alices);
  EXPECT_THAT(Prompts(), ElementsAre("a cat", "a cat", "a cat", "of bob", "of alice"));
}

TEST_F(FairServiceTest, WhatWasUsedSurvivesTheProcess) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(100));
  RunToEnd(CreateFor("alice"));
  engine_->Hold("Step_2_Inference");
  const std::string lost = CreateFor("alice", "again");
  engine_->AwaitHeld("Step_2_Inference");
  const std::string bobs = CreateFor("bob", "of bob");
  BlockingReader(*service_, lost).Until([](const wan::v1::Event& event) {
    return event.stage_started().stage() == "Step_2_Inference";  // now that is stored
  });
  const TempFolder copy;
  CopyFolder(options_.data_dir, copy.path() / "data");
  Close();
  engine_->Release("Step_2_Inference");
  OpenIn(copy.path() / "data", /*load=*/false);
  // The lost attempt had told of its first two steps.
  EXPECT_EQ(Get(lost).device_seconds(), 200);
  EXPECT_EQ(Get(bobs).queue_position(), 0);
  EXPECT_EQ(Get(lost).queue_position(), 1);
}

TEST_F(FairServiceTest, AfterHoursOnlyAgeCounts) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(1));
  RunToEnd(CreateFor("alice"));
  clock_.Advance(absl::Hours(100));
  engine_->Hold("T5_Encoding");
  CreateFor("carol");
  engine_->AwaitHeld("T5_Encoding");
  const std::string alices = CreateFor("alice");
  const std::string bobs = CreateFor("bob");
  EXPECT_EQ(Get(alices).queue_position(), 0);
  EXPECT_EQ(Get(bobs).queue_position(), 1);
  engine_->Release("T5_Encoding");
}

}  // namespace
}  // namespace wan::server
