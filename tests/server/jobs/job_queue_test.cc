#include "server/jobs/job_queue.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::ElementsAre;

QueueEntry Entry(const std::string& job, int priority, uint64_t age, bool ready = true) {
  return {job, "model of " + job, priority, age, ready, nullptr};
}

bool Any(const QueueEntry&) { return true; }

std::vector<std::string> Order(const JobQueue& queue) {
  std::vector<std::string> names;
  for (const QueueEntry* entry : queue.Entries()) names.push_back(entry->job);
  return names;
}

TEST(JobQueueTest, OrdersByPriorityThenAge) {
  JobQueue queue(10);
  EXPECT_EQ(queue.Add(Entry("b", 0, 2)), 0);
  EXPECT_EQ(queue.Add(Entry("a", 0, 1)), 0);
  EXPECT_EQ(queue.Add(Entry("low", -100, 3)), 2);
  EXPECT_EQ(queue.Add(Entry("high", 100, 4)), 0);
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
      queue.TakeFirst([](const QueueEntry& entry) { return entry.model == "model of b"; });
  EXPECT_EQ(taken->job, "b");
  EXPECT_FALSE(queue.TakeFirst([](const QueueEntry&) { return false; }).has_value());
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

}  // namespace
}  // namespace wan::server
