#include "demo/evaluate/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace wan::demo {
namespace {

TEST(WorkQueue, RunsEverythingBeforeItGoes) {
  std::atomic<int> sum = 0;
  {
    WorkQueue queue(3);
    for (int i = 1; i <= 100; ++i) queue.Add([&sum, i] { sum += i; });
  }
  EXPECT_EQ(sum, 5050);
}

TEST(WorkQueue, WorksSideBySide) {
  // Each task needs the other to be under way.
  std::latch both(2);
  WorkQueue queue(2);
  for (int i = 0; i < 2; ++i) queue.Add([&both] { both.arrive_and_wait(); });
}

TEST(WorkQueue, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    WorkQueue queue(1);
    for (int i = 0; i < 5; ++i) queue.Add([&order, i] { order.push_back(i); });
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace wan::demo
