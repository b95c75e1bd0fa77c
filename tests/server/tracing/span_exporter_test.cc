#include "server/tracing/span_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A collector in the test's hands, which also hears what becomes of spans.
class FakeCollector final : public StateListener {
 public:
  PostSpans Function() {
    return [this](const std::string& request, const std::stop_token& stop) {
      const nlohmann::json body = nlohmann::json::parse(request);
      // Has the wait below look again.
      const std::stop_callback wake(stop, [this] { const absl::MutexLock lock(&mutex_); });
      const absl::MutexLock lock(&mutex_);
      requests_.push_back(body["resourceSpans"][0]["scopeSpans"][0]["spans"].size());
      const auto may_go = [this, &stop]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !held_ || stop.stop_requested();
      };
      mutex_.Await(absl::Condition(&may_go));
      if (stop.stop_requested()) return absl::StatusOr<PostAnswer>(absl::CancelledError("stop"));
      return answer_;
    };
  }

  void AnswerWith(absl::StatusOr<PostAnswer> answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  // Answers nothing until `held` is false, or the exporter asks for an end.
  void Hold(bool held) {
    absl::MutexLock lock(&mutex_);
    held_ = held;
  }
  // The numbers of spans in all requests, once there are so many requests.
  std::vector<size_t> AwaitRequests(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return requests_.size() >= count;
    };
    mutex_.Await(absl::Condition(&are_there));
    return requests_;
  }
  // The sums of what was told, once there are so many spans.
  SpansOutcome AwaitOutcome(int64_t spans) {
    absl::MutexLock lock(&mutex_);
    const auto are_told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return told_.exported + told_.failed + told_.dropped >= spans;
    };
    mutex_.Await(absl::Condition(&are_told));
    return told_;
  }

  void OnSpans(const SpansOutcome& outcome) override {
    absl::MutexLock lock(&mutex_);
    told_.exported += outcome.exported;
    told_.failed += outcome.failed;
    told_.dropped += outcome.dropped;
    if (!outcome.problem.empty()) told_.problem = outcome.problem;
  }

 private:
  absl::Mutex mutex_;
  absl::StatusOr<PostAnswer> answer_ ABSL_GUARDED_BY(mutex_) = PostAnswer{200, "{}", {}};
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<size_t> requests_ ABSL_GUARDED_BY(mutex_);
  SpansOutcome told_ ABSL_GUARDED_BY(mutex_);
};

class SpanExporterTest : public ::testing::Test {
 protected:
  void Open(const SpanExporterOptions& options = {}) {
    exporter_ = std::make_unique<SpanExporter>(options, collector_.Function(), clock_,
                                               std::vector<StateListener*>{&collector_});
  }
  void Add(int count) {
    for (int i = 0; i < count; ++i) {
      TraceSpan span;
      span.name = absl::StrCat("span ", i);
      exporter_->Add(span);
    }
  }
  // The exporter's thread waits for a time to pass; let it.
  void PassTime(absl::Duration time) {
    clock_.AwaitWaiters(1);
    clock_.Advance(time);
  }

  fakes::FakeClock clock_;
  FakeCollector collector_;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(SpanExporterTest, AFullRequestGoesAtOnceAndTheRestAfterTheInterval) {
  Open({.batch = 3});
  Add(3);
  EXPECT_THAT(collector_.AwaitRequests(1), ElementsAre(3));
  Add(1);
  PassTime(absl::Seconds(2));
  EXPECT_THAT(collector_.AwaitRequests(2), ElementsAre(3, 1));
  EXPECT_EQ(collector_.AwaitOutcome(4).exported, 4);
}

TEST_F(SpanExporterTest, StopSendsWhatWaits) {
  Open();
  Add(2);
  exporter_->Stop();
  EXPECT_THAT(collector_.AwaitRequests(1), ElementsAre(2));
  EXPECT_EQ(collector_.AwaitOutcome(2).exported, 2);
  Add(1);
  EXPECT_EQ(collector_.AwaitOutcome(3).dropped, 1);
}

TEST_F(SpanExporterTest, WhatMayPassIsTriedAgainAsTheCollectorAsks) {
  Open({.batch = 1});
  collector_.AnswerWith(PostAnswer{503, "", absl::Seconds(20)});
  Add(1);
  collector_.AwaitRequests(1);
  collector_.AnswerWith(PostAnswer{200, "", {}});
  PassTime(absl::Seconds(19));
  EXPECT_THAT(collector_.AwaitRequests(1), ElementsAre(1));
  PassTime(absl::Seconds(1));
  EXPECT_THAT(collector_.AwaitRequests(2), ElementsAre(1, 1));
  EXPECT_EQ(collector_.AwaitOutcome(1).exported, 1);
}

TEST_F(SpanExporterTest, OtherStatusesAreFinal) {
  Open({.batch = 1});
  int64_t spans = 0;
  for (const int status : {400, 401, 404, 413, 500, 307}) {
    collector_.AnswerWith(PostAnswer{status, "", absl::Seconds(1)});
    Add(1);
    const SpansOutcome told = collector_.AwaitOutcome(++spans);
    EXPECT_EQ(told.failed, spans) << status;
    EXPECT_THAT(told.problem, HasSubstr(absl::StrCat("the status ", status)));
  }
}

TEST_F(SpanExporterTest, ADeadCollectorIsGivenUpAfterAMinute) {
  Open({.batch = 1});
  collector_.AnswerWith(absl::UnavailableError("Couldn't connect to server"));
  Add(1);
  for (size_t attempts = 1; attempts < 6; ++attempts) {  // after 1, 2, 4, 8 and 16 s
    collector_.AwaitRequests(attempts);
    PassTime(absl::Seconds(1.25) * (1 << (attempts - 1)));
  }
  const SpansOutcome told = collector_.AwaitOutcome(1);
  EXPECT_EQ(told.failed, 1);
  EXPECT_THAT(told.problem, HasSubstr("does not answer: Couldn't connect to server"));
}

TEST_F(SpanExporterTest, ASlowCollectorHoldsNobodyUp) {
  Open({.capacity = 4, .batch = 2});
  collector_.Hold(true);
  Add(2);
  collector_.AwaitRequests(1);
  Add(6);  // returns, although nothing is taken
  const SpansOutcome told = collector_.AwaitOutcome(2);
  EXPECT_EQ(told.dropped, 2);
  EXPECT_THAT(told.problem, HasSubstr("4 spans wait"));
  collector_.Hold(false);
  EXPECT_EQ(collector_.AwaitOutcome(8).exported, 6);
}

TEST_F(SpanExporterTest, StopGivesASlowCollectorABoundedTime) {
  Open({.batch = 2});
  collector_.Hold(true);
  Add(6);
  collector_.AwaitRequests(1);
  std::thread stopper([&] { exporter_->Stop(); });
  PassTime(absl::Seconds(3));
  const SpansOutcome told = collector_.AwaitOutcome(6);
  stopper.join();
  EXPECT_EQ(told.exported, 0);
  EXPECT_EQ(told.failed + told.dropped, 6);
}

TEST_F(SpanExporterTest, WhatTheCollectorRejectsHasFailed) {
  Open({.batch = 3});
  collector_.AnswerWith(PostAnswer{
      200, R"({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}})", {}});
  Add(3);
  const SpansOutcome told = collector_.AwaitOutcome(3);
  EXPECT_EQ(told.exported, 1);
  EXPECT_EQ(told.failed, 2);
  EXPECT_THAT(told.problem, HasSubstr("too old"));
}

}  // namespace
}  // namespace wan::server
