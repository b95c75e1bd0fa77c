#include "server/jobs/job_queue.h"

#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::ElementsAre;

QueueEntry Entry(const std::string& job, int priority, uint64_t age, bool ready = true) {
  return {job, "model of " + job, priority, age, ready};
}

bool Any(const std::string& /*model*/) { return true; }

std::vector<std::string> Order(JobQueue& queue) {
  std::vector<std::string> names;
  queue.Visit(JobQueue::Front(), queue.size(),
              [&](QueueEntry& entry, const QueueSum&) { names.push_back(entry.job); });
  return names;
}

TEST(JobQueueTest, OrdersByPriorityThenAge) {
  JobQueue queue(10);
  EXPECT_EQ(queue.Add(Entry("b", 0, 2)).jobs, 0);
  EXPECT_EQ(queue.Add(Entry("a", 0, 1)).jobs, 0);
  EXPECT_EQ(queue.Add(Entry("low", -100, 3)).jobs, 2);
  EXPECT_EQ(queue.Add(Entry("high", 100, 4)).jobs, 0);
  EXPECT_THAT(Order(queue), ElementsAre("high", "a", "b", "low"));
  EXPECT_EQ(queue.Position("b"), 2);
  EXPECT_EQ(queue.Position("none"), std::nullopt);
  EXPECT_EQ(queue.TakeFirst(Any)->job, "high");
  EXPECT_EQ(queue.Position("b"), 1);
}

TEST(JobQueueTest, TakesTheFirstThatCanRun) {
  JobQueue queue(10);
  queue.Add(Entry("a", 0, 1));
  queue.Add(Entry("b", 0, 2));
  const auto taken =
      queue.TakeFirst([](const std::string& model) { return model == "model of b"; });
  EXPECT_EQ(taken->job, "b");
  EXPECT_FALSE(queue.TakeFirst([](const std::string&) { return false; }).has_value());
  EXPECT_THAT(Order(queue), ElementsAre("a"));
}

TEST(JobQueueTest, EntryThatIsNotReadyKeepsItsPlaceAndIsNotTaken) {
  JobQueue queue(10);
  queue.Add(Entry("a", 0, 1, /*ready=*/false));
  queue.Add(Entry("b", 0, 2));
  EXPECT_EQ(queue.Position("b"), 1);
  EXPECT_EQ(queue.TakeFirst(Any)->job, "b");
  EXPECT_FALSE(queue.TakeFirst(Any).has_value());
  queue.MarkReady("a");
  queue.MarkReady("none");
  EXPECT_EQ(queue.TakeFirst(Any)->job, "a");
}

TEST(JobQueueTest, IsFullAtItsCapacityAndTakesMoreAllTheSame) {
  JobQueue queue(1);
  EXPECT_FALSE(queue.Full());
  queue.Add(Entry("a", 0, 1));
  EXPECT_TRUE(queue.Full());
  queue.Add(Entry("b", 0, 2));
  EXPECT_EQ(queue.size(), 2);
  queue.Remove("a");
  queue.Remove("a");
  EXPECT_TRUE(queue.Full());
  queue.Remove("b");
  EXPECT_FALSE(queue.Full());
}

// The queue beside one that adds up everything anew, through thousands of changes.
TEST(JobQueueTest, PositionsAndSumsAreThoseOfAWalk) {
  std::mt19937 random(1);
  JobQueue queue(1'000'000);
  std::map<std::pair<int, uint64_t>, QueueEntry> reference;
  const auto sum_before = [&](const std::pair<int, uint64_t>& key) {
    QueueSum sum;
    for (auto place = reference.begin(); place->first != key; ++place) {
      sum += internal::SumOf(place->second);
    }
    return sum;
  };
  for (uint64_t age = 1; age <= 2'000; ++age) {
    QueueEntry entry = Entry("job " + std::to_string(age), static_cast<int>(random() % 5), age);
    entry.model = random() % 2 == 0 ? "x" : "y";
    if (random() % 3 != 0) entry.estimate = absl::Milliseconds(random() % 1000);
    const std::pair<int, uint64_t> key(-entry.priority, age);
    reference.emplace(key, entry);
    const QueueSum before = queue.Add(entry);
    const QueueSum expected = sum_before(key);
    ASSERT_EQ(before.jobs, expected.jobs);
    ASSERT_EQ(before.unknown, expected.unknown);
    ASSERT_EQ(before.estimate, expected.estimate);
    if (random() % 3 == 0) {
      auto gone = std::next(reference.begin(), static_cast<int>(random() % reference.size()));
      queue.Remove(gone->second.job);
      reference.erase(gone);
    }
  }
  // All are estimated anew, in pieces.
  std::optional<JobQueue::Place> place = JobQueue::Front();
  int visited = 0;
  while (place.has_value()) {
    place = queue.Visit(*place, 64, [&](QueueEntry& entry, const QueueSum& before) {
      EXPECT_EQ(before.jobs, visited);
      EXPECT_EQ(before.estimate, visited * absl::Seconds(1));
      entry.estimate = absl::Seconds(1);
      ++visited;
    });
  }
  EXPECT_EQ(visited, static_cast<int>(reference.size()));
  int jobs = 0;
  for (const auto& [model, sum] : queue.models()) {
    EXPECT_EQ(sum.unknown, 0) << model;
    EXPECT_EQ(sum.estimate, sum.jobs * absl::Seconds(1)) << model;
    jobs += sum.jobs;
  }
  EXPECT_EQ(jobs, queue.size());
  // They are taken in the order of the walk.
  for (const auto& [key, entry] : reference) EXPECT_EQ(queue.TakeFirst(Any)->job, entry.job);
  EXPECT_TRUE(queue.models().empty());
}

TEST(JobQueueTest, NoCallLooksAtAllEntries) {
  JobQueue queue(1'000'000);
  for (uint64_t age = 1; age <= 5'000; ++age) {
    QueueEntry entry = Entry("job " + std::to_string(age), 0, age);
    entry.model = "m";
    queue.Add(entry);
  }
  EXPECT_EQ(queue.Position("job 5000"), 4'999);
  EXPECT_EQ(queue.looked_at(), 0);
  EXPECT_FALSE(queue.TakeFirst([](const std::string&) { return false; }).has_value());
  EXPECT_EQ(queue.looked_at(), 1);  // one for each model
  const auto nothing = [](QueueEntry&, const QueueSum&) {};
  const auto place_of = [&](const std::string& job) { return queue.PlaceOf(job).value(); };
  EXPECT_EQ(queue.Visit(place_of("job 101"), 64, nothing), place_of("job 165"));
  EXPECT_EQ(queue.looked_at(), 1 + 64);
  EXPECT_EQ(queue.Visit(place_of("job 5000"), 64, nothing), std::nullopt);
}

}  // namespace
}  // namespace wan::server
