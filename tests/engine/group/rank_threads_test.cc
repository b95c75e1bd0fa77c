#include "engine/group/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"

namespace wan {
namespace {

using testing::ElementsAre;

const RankThreads::OnFailure kIgnore = [](const absl::Status&) {};

TEST(RankThreadsTest, AllRanksWorkAtOnce) {
  RankThreads threads(3);
  std::vector<int> ranks(3, -1);
  for (int round = 0; round < 2; ++round) {
    // Nobody passes the barrier before all three are there.
    auto* const barrier = new absl::Barrier(3);
    const absl::Status status = threads.Run(
        [&](int rank) {
          if (barrier->Block()) delete barrier;
          ranks[rank] = rank + round;
          return absl::OkStatus();
        },
        kIgnore);
    EXPECT_TRUE(status.ok());
    EXPECT_THAT(ranks, ElementsAre(round, round + 1, round + 2));
  }
}

TEST(RankThreadsTest, GivesTheFirstFailureAndNotItsConsequence) {
  RankThreads threads(2);
  absl::Notification failed;
  const absl::Status status = threads.Run(
      [&](int rank) {
        if (rank == 1) return absl::ResourceExhaustedError("no memory");
        failed.WaitForNotification();
        return absl::AbortedError("rank 1 failed");
      },
      [&](const absl::Status&) {
        if (!failed.HasBeenNotified()) failed.Notify();
      });
  EXPECT_EQ(status, absl::ResourceExhaustedError("no memory"));
}

TEST(RankThreadsTest, ThrowsWhatARankThrew) {
  RankThreads threads(2);
  std::atomic<int> failures = 0;
  const auto work = [](int rank) -> absl::Status {
    if (rank == 1) throw std::out_of_range("block 7");
    return absl::OkStatus();
  };
  try {
    threads.Run(work, [&](const absl::Status&) { ++failures; }).IgnoreError();
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_EQ(std::string(error.what()), "block 7");
  }
  EXPECT_EQ(failures, 1);
  // It works again.
  EXPECT_TRUE(threads.Run([](int) { return absl::OkStatus(); }, kIgnore).ok());
}

TEST(RankThreadsTest, OneRankIsTheCaller) {
  RankThreads threads(1);
  std::thread::id id;
  EXPECT_TRUE(threads
                  .Run(
                      [&](int) {
                        id = std::this_thread::get_id();
                        return absl::OkStatus();
                      },
                      kIgnore)
                  .ok());
  EXPECT_EQ(id, std::this_thread::get_id());
}

}  // namespace
}  // namespace wan
