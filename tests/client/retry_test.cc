#include "client/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "client/error.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/fakes/recording_backoff_clock.h"

namespace wan::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto Ms = absl::Milliseconds<int>;
const RetryPolicy kPolicy = {
    .max_retries = 4, .initial_delay = Ms(100), .max_delay = Ms(500), .multiplier = 2};

TEST(BackoffTest, WaitsLongerEachTimeUpToALimit) {
  fakes::RecordingBackoffClock clock;
  Backoff backoff(kPolicy, clock, {});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(backoff.ShouldRetry(absl::UnavailableError("gone")));
  EXPECT_FALSE(backoff.ShouldRetry(absl::UnavailableError("gone")));
  EXPECT_THAT(clock.delays, ElementsAre(Ms(100), Ms(200), Ms(400), Ms(500)));
}

TEST(BackoffTest, ProgressStartsOver) {
  fakes::RecordingBackoffClock clock;
  Backoff backoff(kPolicy, clock, {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(backoff.ShouldRetry(absl::UnavailableError("gone")));
    EXPECT_TRUE(backoff.ShouldRetry(absl::UnavailableError("gone")));
    backoff.Reset();
  }
  EXPECT_THAT(clock.delays, ElementsAre(Ms(100), Ms(200), Ms(100), Ms(200), Ms(100), Ms(200)));
}

TEST(BackoffTest, OnlyALostConnectionIsTriedAgain) {
  fakes::RecordingBackoffClock clock;
  Backoff backoff(kPolicy, clock, {});
  for (const absl::Status& status : {absl::OkStatus(), absl::NotFoundError(""),
                                     absl::CancelledError(""), absl::DeadlineExceededError(""),
                                     absl::InternalError(""), absl::ResourceExhaustedError("")}) {
    EXPECT_FALSE(backoff.ShouldRetry(status)) << status;
  }
  EXPECT_THAT(clock.delays, IsEmpty());
}

TEST(BackoffTest, TheServersDelayIsTheLeast) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(30);
  google::rpc::Status stopping;
  stopping.set_code(14);
  stopping.add_details()->PackFrom(retry);

  fakes::RecordingBackoffClock clock;
  Backoff backoff(kPolicy, clock, {});
  EXPECT_TRUE(backoff.ShouldRetry(FromProto(stopping)));
  EXPECT_THAT(clock.delays, ElementsAre(absl::Seconds(30)));
}

TEST(BackoffTest, TellsOfEveryRetryBeforeItWaits) {
  fakes::RecordingBackoffClock clock;
  RetryPolicy policy = kPolicy;
  std::vector<std::pair<int, absl::Duration>> told;
  policy.on_retry = [&](int retry, absl::Duration delay) { told.emplace_back(retry, delay); };
  clock.on_wait = [&] { EXPECT_EQ(told.size(), clock.delays.size()); };
  Backoff backoff(policy, clock, {});
  EXPECT_TRUE(backoff.ShouldRetry(absl::UnavailableError("gone")));
  EXPECT_TRUE(backoff.ShouldRetry(absl::UnavailableError("gone")));
  backoff.Reset();
  EXPECT_TRUE(backoff.ShouldRetry(absl::UnavailableError("gone")));
  EXPECT_FALSE(backoff.ShouldRetry(absl::NotFoundError("gone")));
  EXPECT_THAT(told,
              ElementsAre(std::pair(1, Ms(100)), std::pair(2, Ms(200)), std::pair(1, Ms(100))));
}

TEST(BackoffTest, AStopEndsIt) {
  fakes::RecordingBackoffClock clock;
  std::stop_source stop;
  Backoff backoff(kPolicy, clock, stop.get_token());
  clock.on_wait = [&] { stop.request_stop(); };
  EXPECT_FALSE(backoff.ShouldRetry(absl::UnavailableError("gone")));
}

TEST(BackoffTest, NoRetriesAtAll) {
  fakes::RecordingBackoffClock clock;
  Backoff backoff({.max_retries = 0}, clock, {});
  EXPECT_FALSE(backoff.ShouldRetry(absl::UnavailableError("gone")));
  EXPECT_THAT(clock.delays, IsEmpty());
}

TEST(SystemBackoffClockTest, AStopEndsAWaitOfAnHour) {
  std::stop_source stop;
  const auto start = std::chrono::steady_clock::now();
  std::thread other([&] { stop.request_stop(); });
  SystemBackoffClock().Wait(absl::Hours(1), stop.get_token());
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
}

TEST(SystemBackoffClockTest, WaitsAsLongAsItIsTold) {
  const auto start = std::chrono::steady_clock::now();
  SystemBackoffClock().Wait(Ms(2), {});
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace wan::client
