#include "server/jobs/executor.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::ElementsAre;

// A task that must run.
Executor::Task MustRun(std::function<void()> run) {
  return {std::move(run), [] { ADD_FAILURE() << "the task was dropped"; }};
}

TEST(ExecutorTest, TasksRunInOrderOnOneThreadBeforeJobs) {
  Executor executor;
  std::vector<std::string> done;
  std::vector<std::thread::id> threads;
  absl::Notification job_ran;
  const auto note = [&](const char* what) {
    done.push_back(what);
    threads.push_back(std::this_thread::get_id());
  };
  executor.Post(MustRun([&] { note("first"); }));
  executor.Post(MustRun([&] { note("second"); }));
  executor.Start([&] {
    if (job_ran.HasBeenNotified()) return false;
    note("job");
    job_ran.Notify();
    return true;
  });
  job_ran.WaitForNotification();
  executor.Stop();
  EXPECT_THAT(done, ElementsAre("first", "second", "job"));
  EXPECT_THAT(threads, testing::Each(threads[0]));
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(ExecutorTest, RunsJobsUntilThereIsNoneAndAgainWhenWoken) {
  Executor executor;
  std::atomic<int> jobs = 3;
  std::atomic<int> ran = 0;
  absl::Notification first_empty;
  absl::Notification woken;
  executor.Start([&] {
    if (jobs == 0) {
      if (!first_empty.HasBeenNotified()) {
        first_empty.Notify();
      } else if (ran == 4 && !woken.HasBeenNotified()) {
        woken.Notify();
      }
      return false;
    }
    --jobs;
    ++ran;
    return true;
  });
  first_empty.WaitForNotification();
  EXPECT_EQ(ran, 3);
  jobs = 1;
  executor.Wake();
  woken.WaitForNotification();
  EXPECT_EQ(ran, 4);
}

TEST(ExecutorTest, ATaskMakesItLookForJobsAgain) {
  Executor executor;
  std::atomic<bool> ready = false;
  absl::Notification ran;
  absl::Notification idle;
  executor.Start([&] {
    if (!ready) {
      if (!idle.HasBeenNotified()) idle.Notify();
      return false;
    }
    if (!ran.HasBeenNotified()) ran.Notify();
    return false;
  });
  idle.WaitForNotification();
  executor.Post(MustRun([&] { ready = true; }));  // as the load of a model does
  ran.WaitForNotification();
}

TEST(ExecutorTest, StopWaitsForWhatRunsAndDropsTheRest) {
  Executor executor;
  absl::Notification inside;
  absl::Notification go_on;
  std::atomic<bool> finished = false;
  std::atomic<int> dropped = 0;
  executor.Start([] { return false; });
  executor.Post(MustRun([&] {
    inside.Notify();
    go_on.WaitForNotification();
    finished = true;
  }));
  inside.WaitForNotification();
  executor.Post({[] { ADD_FAILURE() << "began after Stop"; }, [&] { ++dropped; }});
  std::thread stopper([&] {
    executor.Stop();
    EXPECT_TRUE(finished);
  });
  while (dropped == 0) std::this_thread::yield();
  go_on.Notify();
  stopper.join();
  executor.Post({[] { ADD_FAILURE() << "began after Stop"; }, [&] { ++dropped; }});
  EXPECT_EQ(dropped, 2);
  executor.Stop();
}

TEST(ExecutorTest, WhatRunsMayHaltIt) {
  Executor executor;
  std::atomic<int> dropped = 0;
  absl::Notification halted;
  executor.Post({[&] {
                   executor.Post({[] { ADD_FAILURE() << "began after Halt"; }, [&] { ++dropped; }});
                   executor.Halt();
                   halted.Notify();
                 },
                 [] {}});
  executor.Start([] {
    ADD_FAILURE() << "a job began after Halt";
    return false;
  });
  halted.WaitForNotification();
  EXPECT_EQ(dropped, 1);
  executor.Post({[] { ADD_FAILURE() << "began after Halt"; }, [&] { ++dropped; }});
  EXPECT_EQ(dropped, 2);
  executor.Stop();
}

}  // namespace
}  // namespace wan::server
