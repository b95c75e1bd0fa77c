#include "server/calls/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/synchronization/barrier.h"

namespace wan::server {
namespace {

TEST(WorkerPoolTest, OneThreadRunsTasksInTheirOrder) {
  std::vector<int> order;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(WorkerPoolTest, TasksRunSideBySide) {
  // Ends only if all three are in a task at the same time.
  auto* const barrier = new absl::Barrier(3);
  WorkerPool pool(3);
  for (int i = 0; i < 3; ++i) {
    pool.Post([barrier] {
      if (barrier->Block()) delete barrier;
    });
  }
}

TEST(WorkerPoolTest, TheEndWaitsForWhatTasksPost) {
  std::atomic<int> ran = 0;
  std::function<void(int)> run;  // outlives the pool, whose tasks use it
  {
    WorkerPool pool(4);
    run = [&](int depth) {
      ++ran;
      if (depth < 50) pool.Post([&run, depth] { run(depth + 1); });
    };
    pool.Post([&run] { run(1); });
  }
  EXPECT_EQ(ran, 50);
}

TEST(WorkerPoolTest, WhatATaskHoldsIsReleasedBeforeTheEnd) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  {
    WorkerPool pool(2);
    pool.Post([held = std::move(held)] {});
  }
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace wan::server
