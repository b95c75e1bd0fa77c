#include "server/calls/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/store/disk_wait.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;

WorkLimits OneThreadEach() {
  WorkLimits limits;
  limits.classes.fill({1, 1});
  return limits;
}

// Keeps a thread of a class from taking anything else until Open.
class Gate {
 public:
  Gate(WorkerPool& pool, WorkClass work, const std::string& party) {
    pool.Post(work, party, nullptr, [this](const absl::Status&) {
      begun_.Notify();
      open_.WaitForNotification();
    });
    begun_.WaitForNotification();
  }
  void Open() { open_.Notify(); }

 private:
  absl::Notification begun_;
  absl::Notification open_;
};

bool Never() { return false; }

TEST(WorkerPoolTest, TasksOfOnePartyRunInTheirOrder) {
  std::vector<int> order;
  std::vector<int> expected;
  {
    WorkerPool pool(OneThreadEach());
    for (int i = 0; i < 100; ++i) {
      expected.push_back(i);
      pool.Post(WorkClass::kQuick, "a", nullptr,
                [&, i](const absl::Status&) { order.push_back(i); });
    }
  }
  EXPECT_EQ(order, expected);
}

TEST(WorkerPoolTest, PartiesTakeTurns) {
  std::vector<std::string> order;
  {
    WorkerPool pool(OneThreadEach());
    Gate gate(pool, WorkClass::kPlans, "gate");
    const auto post = [&](const std::string& party) {
      pool.Post(WorkClass::kPlans, party, nullptr,
                [&order, party](const absl::Status&) { order.push_back(party); });
    };
    for (int i = 0; i < 3; ++i) post("eve");
    post("alice");
    post("bob");
    gate.Open();
  }
  EXPECT_THAT(order, ElementsAre("eve", "alice", "bob", "eve", "eve"));
}

TEST(WorkerPoolTest, WorkThatGoesOnComesBeforeWhatItsPartyHasWaiting) {
  std::vector<std::string> order;
  {
    WorkerPool pool(OneThreadEach());
    Gate gate(pool, WorkClass::kStore, "gate");
    const auto note = [&order](const std::string& what) {
      return [&order, what](const absl::Status&) { order.push_back(what); };
    };
    pool.Post(WorkClass::kStore, "eve", nullptr, [&](const absl::Status&) {
      order.push_back("eve begins");
      pool.PostNext(WorkClass::kStore, "eve", nullptr, note("eve goes on"));
    });
    pool.Post(WorkClass::kStore, "eve", nullptr, note("eve's next"));
    pool.Post(WorkClass::kStore, "alice", nullptr, note("alice"));
    gate.Open();
  }
  EXPECT_THAT(order, ElementsAre("eve begins", "alice", "eve goes on", "eve's next"));
}

TEST(WorkerPoolTest, AClassDoesNotWaitForAnother) {
  WorkerPool pool(OneThreadEach());
  Gate gate(pool, WorkClass::kPlans, "eve");
  absl::Notification ran;
  pool.Post(WorkClass::kQuick, "eve", nullptr, [&](const absl::Status&) { ran.Notify(); });
  ran.WaitForNotification();
  gate.Open();
}

TEST(WorkerPoolTest, APartyTakesNoMoreThreadsThanItsPart) {
  WorkLimits limits;
  limits.classes.fill({2, 1});
  std::atomic<bool> ran_beside = false;
  {
    WorkerPool pool(limits);
    Gate gate(pool, WorkClass::kStore, "eve");
    pool.Post(WorkClass::kStore, "eve", nullptr, [&](const absl::Status&) { ran_beside = true; });
    // The second thread takes this, although eve's task was there before.
    absl::Notification ran;
    pool.Post(WorkClass::kStore, "alice", nullptr, [&](const absl::Status&) { ran.Notify(); });
    ran.WaitForNotification();
    EXPECT_FALSE(ran_beside);
    gate.Open();
  }
  EXPECT_TRUE(ran_beside);
}

TEST(WorkerPoolTest, ATaskThatWaitsForTheDiskHoldsBackNeitherItsClassNorItsParty) {
  std::vector<std::string> order;
  {
    WorkerPool pool(OneThreadEach());
    absl::Notification waits;
    absl::Notification disk;
    pool.Post(WorkClass::kPlans, "eve", nullptr, [&](const absl::Status&) {
      DiskWait& wait = *DiskWait::OfThisThread();
      wait.Begin();
      waits.Notify();
      disk.WaitForNotification();
      wait.End();
      order.push_back("eve's first");
    });
    waits.WaitForNotification();
    absl::Notification ran;
    pool.Post(WorkClass::kPlans, "eve", nullptr, [&](const absl::Status&) {
      order.push_back("eve's second");
      ran.Notify();
    });
    ran.WaitForNotification();
    disk.Notify();
  }
  EXPECT_THAT(order, ElementsAre("eve's second", "eve's first"));
}

// The spare thread is for those who wait only.
TEST(WorkerPoolTest, AfterAWaitAClassHasNoMoreThreadsThanBefore) {
  WorkerPool pool(OneThreadEach());
  absl::Notification waited;
  pool.Post(WorkClass::kPlans, "eve", nullptr, [&](const absl::Status&) {
    DiskWait& wait = *DiskWait::OfThisThread();
    wait.Begin();
    wait.End();
    waited.Notify();
  });
  waited.WaitForNotification();
  Gate gate(pool, WorkClass::kPlans, "eve");
  std::atomic<bool> ran_beside = false;
  pool.Post(WorkClass::kPlans, "alice", nullptr, [&](const absl::Status&) { ran_beside = true; });
  absl::Notification quick;
  pool.Post(WorkClass::kQuick, "alice", nullptr, [&](const absl::Status&) { quick.Notify(); });
  quick.WaitForNotification();
  EXPECT_FALSE(ran_beside);
  gate.Open();
}

TEST(WorkerPoolTest, KnowsItsThreads) {
  WorkerPool pool(OneThreadEach());
  WorkerPool other(OneThreadEach());
  EXPECT_FALSE(pool.IsWorker());
  absl::Notification ran;
  pool.Post(WorkClass::kQuick, "a", nullptr, [&](const absl::Status&) {
    EXPECT_TRUE(pool.IsWorker());
    EXPECT_FALSE(other.IsWorker());
    ran.Notify();
  });
  ran.WaitForNotification();
}

TEST(WorkerPoolTest, ThreadsOfAClassWorkSideBySide) {
  // Ends only if all three are in a task at the same time.
  auto* const barrier = new absl::Barrier(3);
  WorkerPool pool(WorkLimits::Same(3));
  for (int i = 0; i < 3; ++i) {
    pool.Post(WorkClass::kFiles, "a", nullptr, [barrier](const absl::Status&) {
      if (barrier->Block()) delete barrier;
    });
  }
}

TEST(WorkerPoolTest, ATaskIsToldThatItsCallerIsGone) {
  absl::Status turn;
  {
    WorkerPool pool(OneThreadEach());
    pool.Post(
        WorkClass::kPlans, "a", [] { return true; },
        [&](const absl::Status& told) { turn = told; });
  }
  EXPECT_TRUE(absl::IsCancelled(turn)) << turn;
}

TEST(WorkerPoolTest, AStopDropsWhatWaits) {
  absl::Status waited;
  absl::Status posted_later;
  absl::Status always = absl::UnknownError("has not run");
  {
    WorkerPool pool(OneThreadEach());
    Gate gate(pool, WorkClass::kPlans, "a");
    pool.Post(WorkClass::kPlans, "a", Never, [&](const absl::Status& told) { waited = told; });
    pool.Post(WorkClass::kPlans, "a", nullptr, [&](const absl::Status& told) { always = told; });
    pool.Stop();
    pool.Post(WorkClass::kQuick, "b", Never,
              [&](const absl::Status& told) { posted_later = told; });
    gate.Open();
  }
  EXPECT_EQ(ReasonOf(waited), kReasonServerStopping);
  EXPECT_EQ(ReasonOf(posted_later), kReasonServerStopping);
  EXPECT_TRUE(always.ok()) << always;
}

TEST(WorkerPoolTest, TheEndWaitsForWhatTasksPostToOtherClasses) {
  std::atomic<int> ran = 0;
  std::function<void(size_t)> run;  // outlives the pool, whose tasks use it
  {
    WorkerPool pool(OneThreadEach());
    run = [&](size_t depth) {
      ++ran;
      if (depth == 50) return;
      pool.Post(static_cast<WorkClass>(depth % kWorkClasses), "a", nullptr,
                [&run, depth](const absl::Status&) { run(depth + 1); });
    };
    pool.Post(WorkClass::kQuick, "a", nullptr, [&run](const absl::Status&) { run(1); });
  }
  EXPECT_EQ(ran, 50);
}

TEST(WorkerPoolTest, WhatATaskHoldsIsReleasedBeforeTheEnd) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  {
    WorkerPool pool(WorkLimits::Same(2));
    pool.Post(WorkClass::kQuick, "a", nullptr, [held = std::move(held)](const absl::Status&) {});
  }
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace wan::server
