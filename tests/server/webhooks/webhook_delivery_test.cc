#include "server/webhooks/webhook_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/conversion/convert.h"
#include "server/store/job_store.h"
#include "server/store/sqlite_job_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {
namespace {

using Kind = WebhookOutcome::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Answers as told, and 200 when nothing more was told.
class FakeTransport final : public WebhookTransport {
 public:
  absl::StatusOr<int> Post(const std::string& url, const WebhookMessage& /*message*/,
                           std::stop_token stop) override {
    // What it locks is unlocked then, so that the wait below looks again.
    const std::stop_callback wake(stop, [this] { absl::MutexLock lock(&mutex_); });
    absl::MutexLock lock(&mutex_);
    urls_.push_back(url);
    ++running_;
    most_running_ = std::max(most_running_, running_);
    const bool hangs = url.starts_with("https://hangs/");
    const auto go = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return (hangs ? timeouts_ > 0 : !held_) || stop.stop_requested();
    };
    mutex_.Await(absl::Condition(&go));
    --running_;
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    if (hangs) {
      --timeouts_;
      return absl::DeadlineExceededError("Timeout was reached");
    }
    if (answers_.empty()) return 200;
    const absl::StatusOr<int> answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

  void Answer(absl::StatusOr<int> answer) {
    absl::MutexLock lock(&mutex_);
    answers_.push_back(std::move(answer));
  }
  void Hold(bool held) {
    absl::MutexLock lock(&mutex_);
    held_ = held;
  }
  void AwaitRunning(int count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ >= count; };
    mutex_.Await(absl::Condition(&there));
  }
  // So many of the posts to the host `hangs` time out; the others go on hanging.
  void TimeOut(int count) {
    absl::MutexLock lock(&mutex_);
    timeouts_ += count;
  }
  int most_running() {
    absl::MutexLock lock(&mutex_);
    return most_running_;
  }
  std::vector<std::string> urls() {
    absl::MutexLock lock(&mutex_);
    return urls_;
  }

 private:
  absl::Mutex mutex_;
  std::deque<absl::StatusOr<int>> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> urls_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int timeouts_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_running_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Outcomes final : public StateListener {
 public:
  void OnWebhook(const WebhookOutcome& outcome) override {
    absl::MutexLock lock(&mutex_);
    all_.push_back(outcome);
  }
  // The outcomes once there are so many.
  std::vector<WebhookOutcome> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_.size() >= count; };
    mutex_.Await(absl::Condition(&there));
    return all_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<WebhookOutcome> all_ ABSL_GUARDED_BY(mutex_);
};

class WebhookDeliveryTest : public ::testing::Test {
 protected:
  WebhookDeliveryTest() : store_(*OpenInMemoryJobStore()) {
    options_.rules.hosts = {"h", "hangs"};
    options_.secret = "0123456789abcdef01234567";
    options_.parallel = 1;
  }

  void Start() {
    delivery_ = std::make_unique<WebhookDelivery>(options_, transport_, clock_,
                                                  std::vector<StateListener*>{&outcomes_});
    delivery_->Start(store_->webhooks());
  }

  // A job with a webhook that has just ended.
  void EndJob(const std::string& id, const std::string& url = "https://h/x",
              const std::string& owner = "") {
    StoredJob job;
    job.job.set_owner(owner);
    job.job.set_name("jobs/" + id);
    job.job.set_state(wan::v1::JOB_STATE_QUEUED);
    job.job.mutable_request()->set_webhook_url(url);
    wan::v1::Event event;
    event.set_sequence(1);
    EXPECT_TRUE(InsertInto(*store_, job, "", std::span(&event, 1)).ok());
    JobChange end{job.job.name(), job.job, {}, std::nullopt};
    end.row->set_state(wan::v1::JOB_STATE_COMPLETED);
    *end.row->mutable_end_time() = ToProto(clock_.Now());
    event.set_sequence(2);
    event.mutable_completed();
    end.events = {event};
    EXPECT_TRUE(ApplyTo(*store_, std::span(&end, 1)).ok());
    if (delivery_ != nullptr) delivery_->OnJobEndStored();
  }

  // Moves time to the next attempt, which every thread waits for.
  void AdvanceToNext() {
    clock_.AwaitWaiters(static_cast<size_t>(options_.parallel));
    const auto queued = store_->webhooks().Webhooks(0, 1000);
    ASSERT_TRUE(queued.ok() && !queued->empty()) << queued.status();
    absl::Time next = absl::InfiniteFuture();
    for (const QueuedWebhook& webhook : *queued) next = std::min(next, webhook.due);
    clock_.Advance(next - clock_.Now());
  }

  fakes::FakeClock clock_;
  std::unique_ptr<JobStore> store_;
  FakeTransport transport_;
  Outcomes outcomes_;
  WebhookOptions options_;
  std::unique_ptr<WebhookDelivery> delivery_;  // goes first
};

TEST_F(WebhookDeliveryTest, WhatEndsIsReportedAtOnce) {
  Start();
  EndJob("a");
  const auto outcomes = outcomes_.Await(1);
  EXPECT_EQ(outcomes[0].kind, Kind::kDelivered);
  EXPECT_EQ(outcomes[0].job, "jobs/a");
  EXPECT_EQ(outcomes[0].host, "h");
  EXPECT_EQ(outcomes[0].attempts, 1);
  EXPECT_THAT(*store_->webhooks().Webhooks(0, 1), IsEmpty());
  EXPECT_THAT(transport_.urls(), ElementsAre("https://h/x"));
}

TEST_F(WebhookDeliveryTest, WhatAnEarlierProcessLeftIsReported) {
  EndJob("a");
  EndJob("b");
  Start();
  EXPECT_THAT(outcomes_.Await(2), SizeIs(2));
}

TEST_F(WebhookDeliveryTest, TriesAgainWithGrowingDelays) {
  transport_.Answer(absl::UnavailableError("Could not connect to server"));
  transport_.Answer(500);
  transport_.Answer(302);  // a redirect is not followed
  Start();
  EndJob("a");
  outcomes_.Await(1);
  std::vector<absl::Duration> delays;
  for (size_t attempt = 2; attempt <= 4; ++attempt) {
    const absl::Time before = clock_.Now();
    AdvanceToNext();
    delays.push_back(clock_.Now() - before);
    outcomes_.Await(attempt);
  }
  for (size_t i = 0; i < delays.size(); ++i) {
    const absl::Duration least = absl::Seconds(2) * (1 << i);
    EXPECT_GE(delays[i], least);
    EXPECT_LE(delays[i], least * 1.25);
  }
  const auto outcomes = outcomes_.Await(4);
  EXPECT_EQ(outcomes[0].kind, Kind::kRetried);
  EXPECT_EQ(outcomes[0].problem, "Could not connect to server");
  EXPECT_EQ(outcomes[1].problem, "the answer has the status 500");
  EXPECT_EQ(outcomes[2].problem, "the answer has the status 302");
  EXPECT_EQ(outcomes[3].kind, Kind::kDelivered);
  EXPECT_EQ(outcomes[3].attempts, 4);
}

TEST_F(WebhookDeliveryTest, AWallClockThatIsSetBackDelaysNothingForLong) {
  transport_.Answer(500);
  EndJob("a");
  Start();
  outcomes_.Await(1);
  clock_.AwaitWaiters(1);
  clock_.Jump(-absl::Hours(72));
  // At most the longest delay, however far the time that was noted lies ahead.
  clock_.Advance(options_.most_delay * 1.25);
  EXPECT_EQ(outcomes_.Await(2)[1].kind, Kind::kDelivered);
}

TEST_F(WebhookDeliveryTest, GivesUpAfterItsAge) {
  options_.first_delay = absl::Hours(10);
  options_.most_delay = absl::Hours(10);
  for (int i = 0; i < 4; ++i) transport_.Answer(503);
  Start();
  EndJob("a");
  size_t attempts = 1;
  while (outcomes_.Await(attempts).back().kind == Kind::kRetried) {
    AdvanceToNext();
    ++attempts;
  }
  const auto outcomes = outcomes_.Await(attempts);
  EXPECT_EQ(outcomes.back().kind, Kind::kGivenUp);
  // After 10 to 12.5, and 20 to 25 hours, which may be one too few, and then it is older than 24.
  EXPECT_GE(attempts, 3u);
  EXPECT_LE(attempts, 4u);
  EXPECT_THAT(*store_->webhooks().Webhooks(0, 1), IsEmpty());
}

TEST_F(WebhookDeliveryTest, AWallClockThatIsSetForwardGivesNothingUp) {
  for (int i = 0; i < 3; ++i) transport_.Answer(503);
  Start();
  EndJob("a");
  EXPECT_EQ(outcomes_.Await(1)[0].kind, Kind::kRetried);
  clock_.AwaitWaiters(static_cast<size_t>(options_.parallel));
  clock_.Jump(absl::Hours(72));
  clock_.Advance(options_.first_delay * 1.25);
  ASSERT_EQ(outcomes_.Await(2)[1].kind, Kind::kRetried) << "the job only looks old";
  // A day later the new time is believed.
  clock_.AwaitWaiters(static_cast<size_t>(options_.parallel));
  clock_.Advance(absl::Hours(24));
  EXPECT_EQ(outcomes_.Await(3)[2].kind, Kind::kGivenUp);
}

TEST_F(WebhookDeliveryTest, AReceiverThatIsGoneIsGivenUpAtOnce) {
  transport_.Answer(410);
  Start();
  EndJob("a");
  EXPECT_EQ(outcomes_.Await(1)[0].kind, Kind::kGivenUp);
  EXPECT_THAT(*store_->webhooks().Webhooks(0, 1), IsEmpty());
}

TEST_F(WebhookDeliveryTest, AHostThatIsNoLongerAllowedIsNotAsked) {
  Start();
  EndJob("a", "https://other/x");
  const auto outcomes = outcomes_.Await(1);
  EXPECT_EQ(outcomes[0].kind, Kind::kRetried);
  EXPECT_THAT(outcomes[0].problem, HasSubstr("allowed only h, hangs"));
  EXPECT_THAT(transport_.urls(), SizeIs(0));
}

TEST_F(WebhookDeliveryTest, SoManyAtATimeAndNoMore) {
  options_.parallel = 6;
  transport_.Hold(true);
  Start();
  // A host has half of the places.
  for (const char* const id : {"a", "b", "c", "d", "e"}) EndJob(id);
  transport_.AwaitRunning(3);
  transport_.Hold(false);
  outcomes_.Await(5);
  EXPECT_EQ(transport_.most_running(), 3);
}

TEST_F(WebhookDeliveryTest, AReceiverThatDoesNotAnswerDelaysNobodyElse) {
  options_.parallel = 8;
  Start();
  for (int i = 0; i < 24; ++i) EndJob("eve" + std::to_string(i), "https://hangs/x", "eve");
  transport_.AwaitRunning(4);
  EndJob("alice1", "https://h/x", "alice");
  EXPECT_EQ(outcomes_.Await(1)[0].job, "jobs/alice1") << "sent while the others hang";
  // From now on it has one place, whatever is due.
  transport_.TimeOut(4);
  const auto timed_out = outcomes_.Await(5);
  for (size_t i = 1; i < timed_out.size(); ++i) EXPECT_EQ(timed_out[i].kind, Kind::kRetried);
  transport_.AwaitRunning(1);
  clock_.AwaitWaiters(7);  // all other threads wait
  EXPECT_THAT(transport_.urls(), SizeIs(4 + 1 + 1));
  EndJob("alice2", "https://h/x", "alice");
  EXPECT_EQ(outcomes_.Await(6)[5].job, "jobs/alice2");
  transport_.TimeOut(1);
  EXPECT_EQ(outcomes_.Await(7)[6].job, "jobs/eve4") << "the next one of the host, in its order";
}

TEST_F(WebhookDeliveryTest, AStopEndsAnAttemptAndLosesNothing) {
  transport_.Hold(true);
  Start();
  EndJob("a");
  transport_.AwaitRunning(1);
  delivery_->Stop();
  EXPECT_THAT(*store_->webhooks().Webhooks(0, 1), SizeIs(1));
}

}  // namespace
}  // namespace wan::server
