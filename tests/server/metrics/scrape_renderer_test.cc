#include "server/metrics/scrape_renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/metrics/connection_share.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/gunzip.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Counts its rounds, and can be held.
class CountedSource final : public ScrapeSource {
 public:
  Scrape Collect() const override {
    absl::MutexLock lock(&mutex_);
    ++rounds_;
    mutex_.Await(absl::Condition(&free_));
    prometheus::MetricFamily family;
    family.name = "wan_rounds";
    family.help = "The rounds so far.";
    family.type = prometheus::MetricType::Gauge;
    family.metric.resize(1);
    family.metric[0].gauge.value = rounds_;
    return {{family}, {}};
  }
  void Hold(bool held) {
    absl::MutexLock lock(&mutex_);
    free_ = !held;
  }
  void AwaitRound(int number) {
    absl::MutexLock lock(&mutex_);
    const auto begun = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rounds_ >= number; };
    mutex_.Await(absl::Condition(&begun));
  }
  int rounds() const {
    absl::MutexLock lock(&mutex_);
    return rounds_;
  }

 private:
  mutable absl::Mutex mutex_;
  mutable int rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool free_ ABSL_GUARDED_BY(mutex_) = true;
};

class ScrapeRendererTest : public ::testing::Test {
 protected:
  using Text = ScrapeRenderer::Text;

  void Ask(const ScrapeRenderer::Variant& variant = {}) {
    renderer_->Render(variant, [this](const Text& text) {
      absl::MutexLock lock(&mutex_);
      texts_.push_back(text);
    });
  }
  // All texts, once there are so many.
  std::vector<Text> AwaitTexts(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return texts_.size() >= count; };
    mutex_.Await(absl::Condition(&there));
    return texts_;
  }

  fakes::FakeClock clock_;
  const std::shared_ptr<CountedSource> source_ = std::make_shared<CountedSource>();
  absl::Mutex mutex_;
  std::vector<Text> texts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ScrapeRenderer> renderer_ = std::make_unique<ScrapeRenderer>(
      source_, ScrapeRenderer::Rate{absl::Milliseconds(200), 2}, clock_);
};

TEST_F(ScrapeRendererTest, AllWhoWaitShareOneText) {
  source_->Hold(true);
  Ask();
  source_->AwaitRound(1);
  for (int i = 0; i < 100; ++i) Ask();
  source_->Hold(false);
  const auto texts = AwaitTexts(101);
  EXPECT_THAT(*texts[0], HasSubstr("wan_rounds 1\n"));
  EXPECT_THAT(*texts[1], HasSubstr("wan_rounds 2\n"))
      << "a round that began before the scrape does not show what happened since";
  for (size_t i = 2; i < texts.size(); ++i) EXPECT_EQ(texts[i], texts[1]) << i;
  EXPECT_EQ(source_->rounds(), 2);
}

TEST_F(ScrapeRendererTest, RoundsComeAtTheirRate) {
  Ask();
  AwaitTexts(1);
  Ask();  // the burst has two
  AwaitTexts(2);
  Ask();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Milliseconds(199));
  EXPECT_EQ(source_->rounds(), 2);
  clock_.Advance(absl::Milliseconds(1));
  AwaitTexts(3);
  Ask();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Milliseconds(200));
  AwaitTexts(4);
  // After a while there is a burst again, and no more than that.
  clock_.Advance(absl::Seconds(60));
  for (size_t i = 5; i <= 6; ++i) {
    Ask();
    AwaitTexts(i);
  }
  Ask();
  clock_.AwaitWaiters(1);
  EXPECT_EQ(source_->rounds(), 6);
}

TEST_F(ScrapeRendererTest, EachVariantIsMadeFromTheSameRound) {
  source_->Hold(true);
  Ask();
  source_->AwaitRound(1);
  Ask({MetricFormat::kText, false});
  Ask({MetricFormat::kText, true});
  Ask({MetricFormat::kOpenMetrics, false});
  Ask({MetricFormat::kOpenMetrics, true});
  source_->Hold(false);
  const auto texts = AwaitTexts(5);
  EXPECT_EQ(support::Gunzip(*texts[2]), *texts[1]);
  EXPECT_EQ(*texts[3], *texts[1] + "# EOF\n");
  EXPECT_EQ(support::Gunzip(*texts[4]), *texts[3]);
  EXPECT_EQ(source_->rounds(), 2);
}

TEST_F(ScrapeRendererTest, WhoStillWaitsAtTheEndIsDropped) {
  for (size_t i = 1; i <= 2; ++i) {
    Ask();
    AwaitTexts(i);
  }
  Ask();
  clock_.AwaitWaiters(1);
  renderer_.reset();
  EXPECT_EQ(source_->rounds(), 2);
}

class FakeConnection final : public Closable {
 public:
  FakeConnection(std::string name, std::vector<std::string>& closed)
      : name_(std::move(name)), closed_(closed) {}
  void Close() override { closed_.push_back(name_); }

 private:
  const std::string name_;
  std::vector<std::string>& closed_;
};

TEST(ConnectionShareTest, WhoeverHasTheMostClosesTheirOldest) {
  std::vector<std::string> closed;
  std::vector<std::shared_ptr<FakeConnection>> open;
  ConnectionShare share(4);
  const auto add = [&](const std::string& peer, const std::string& name) {
    open.push_back(std::make_shared<FakeConnection>(name, closed));
    share.Add(peer, open.back());
  };
  add("honest", "h1");
  for (int i = 1; i <= 6; ++i) add("many", "m" + std::to_string(i));
  EXPECT_THAT(closed, ElementsAre("m1", "m2", "m3"));
  add("another", "a1");
  EXPECT_THAT(closed, ElementsAre("m1", "m2", "m3", "m4")) << "newcomers find room";
  closed.clear();
  add("honest", "h2");
  // Both have two now, and the honest one came first.
  EXPECT_THAT(closed, ElementsAre("h1"));
}

TEST(ConnectionShareTest, WhatHasEndedOrIsOfAnotherKindTakesNoPlace) {
  std::vector<std::string> closed;
  ConnectionShare share(2);
  const auto first = std::make_shared<FakeConnection>("first", closed);
  const auto second = std::make_shared<FakeConnection>("second", closed);
  share.Add("p", first);
  share.Add("p", second);
  share.Remove(*first);
  share.Add("p", std::make_shared<FakeConnection>("ended", closed));
  share.Add("p", first);
  EXPECT_THAT(closed, testing::IsEmpty());
}

}  // namespace
}  // namespace wan::server
