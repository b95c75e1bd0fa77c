#include "server/calls/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <list>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/calls/memory_trimmer.h"
#include "server/conversion/errors.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Lease = Admission::Lease;

constexpr Party kAnn{"principal:ann"};
constexpr Party kBob{"principal:bob"};
constexpr Party kEve{"principal:eve"};

void ExpectBusy(const absl::Status& status) {
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), kReasonServerBusy);
  EXPECT_TRUE(RetryDelayOf(status).has_value());
}

// Takes places until one is refused. Returns how many it got.
int64_t TakeAll(const std::function<absl::StatusOr<Lease>()>& take, std::list<Lease>& held) {
  for (int64_t count = 0;; ++count) {
    absl::StatusOr<Lease> lease = take();
    if (!lease.ok()) {
      ExpectBusy(lease.status());
      return count;
    }
    held.push_back(*std::move(lease));
  }
}

TEST(AdmissionTest, APartyMayHaveAsMuchAsItLeavesToOthers) {
  AdmissionLimits limits;
  limits.callers.streams = 64;
  Admission admission(limits);
  std::list<Lease> held;
  EXPECT_EQ(TakeAll([&] { return admission.Stream(kEve); }, held), 32);
  EXPECT_EQ(TakeAll([&] { return admission.Stream(kAnn); }, held), 16);
  EXPECT_EQ(admission.Stats().streams, 48);
  EXPECT_EQ(admission.Stats().refused_streams, 2);
  EXPECT_EQ(TakeAll([&] { return admission.Stream(kBob); }, held), 1)
      << "the last eighth of one front is for those who have nothing";
  EXPECT_EQ(TakeAll([&] { return admission.Stream({"c"}); }, held), 1);
  held.clear();
  EXPECT_EQ(admission.PartiesNow(), 0);
  EXPECT_EQ(TakeAll([&] { return admission.Stream(kEve); }, held), 32) << "as if nothing had been";
}

TEST(AdmissionTest, TwoPartiesThatTakeTurnsHaveTheSame) {
  AdmissionLimits limits;
  limits.callers.downloads = 60;
  Admission admission(limits);
  std::list<Lease> held;
  std::array<int, 2> count{};
  for (int i = 0; i < 100; ++i) {
    const Party party = i % 2 == 0 ? kEve : kAnn;
    auto lease = admission.Download(party, absl::StrCat(i));
    if (!lease.ok()) continue;
    held.push_back(*std::move(lease));
    ++count[i % 2];
  }
  EXPECT_EQ(count[0], count[1]);
  EXPECT_LE(count[0], 20) << "a third";
  EXPECT_GE(count[0], 18);
}

// Whatever others do, somebody who holds nothing finds a place, until an eighth of all places is in
// as many hands.
TEST(AdmissionTest, WhoeverComesNewFindsRoom) {
  AdmissionLimits limits;
  limits.callers = {.streams = 256,
                    .downloads = 256,
                    .requests = 256,
                    .request_bytes = 1 << 20,
                    .answer_bytes = 1 << 20};
  std::mt19937 random(7);
  Admission admission(limits);
  const std::function<absl::StatusOr<Lease>(const Party&, int64_t)> takes[] = {
      [&](const Party& party, int64_t) { return admission.Stream(party); },
      [&](const Party& party, int64_t) {
        return admission.Download(party, std::string(party.name));
      },
      [&](const Party& party, int64_t bytes) {
        return admission.Request(party, bytes, Effect::kReads);
      },
      [&](const Party& party, int64_t bytes) { return admission.Arriving(party, bytes, {}); },
      [&](const Party& party, int64_t bytes) -> absl::StatusOr<Lease> {
        auto request = admission.Request(party, 0, Effect::kReads);
        if (!request.ok()) return request.status();
        return admission.Answer(*std::move(request), bytes);
      },
  };
  for (const auto& take : takes) {
    std::vector<std::pair<std::string, Lease>> held;
    std::map<std::string, int64_t> count;
    for (int step = 0; step < 20'000; ++step) {
      if (random() % 3 == 0 && !held.empty()) {
        const size_t which = random() % held.size();
        --count[held[which].first];
        std::swap(held[which], held.back());
        held.pop_back();
        continue;
      }
      // Greedy ones hold much; the others one place, at most as many as the last eighth has.
      const bool greedy = random() % 4 != 0;
      const std::string name = absl::StrCat(greedy ? random() % 4 : 4 + random() % 24);
      const bool is_new = count[name] == 0;
      const int64_t bytes = is_new ? 1 + random() % (1 << 10) : random() % (1 << 18);
      const Front front = random() % 2 == 0 ? Front::kGrpc : Front::kHttp;
      auto lease = take({name, front}, bytes);
      ASSERT_TRUE(lease.ok() || !is_new) << step << " " << lease.status();
      if (!lease.ok()) continue;
      held.emplace_back(name, *std::move(lease));
      ++count[name];
      ASSERT_LE(admission.Stats().streams, 256);
      ASSERT_LE(count[name], 200) << "half, or of small requests their number";
    }
    held.clear();
    EXPECT_EQ(admission.PartiesNow(), 0);
  }
}

TEST(AdmissionTest, ManyPartiesOfOneFrontLeaveAnEighthToTheOther) {
  AdmissionLimits limits;
  limits.callers.requests = 64;
  Admission admission(limits);
  std::list<Lease> held;
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat(i);
    auto lease = admission.Request({name, Front::kHttp}, 0, Effect::kReads);
    if (lease.ok()) held.push_back(*std::move(lease));
  }
  EXPECT_EQ(admission.Stats().requests, 56);
  EXPECT_TRUE(admission.Request({"a", Front::kGrpc}, 0, Effect::kReads).ok());
}

TEST(AdmissionTest, PublicCallsTakeNothingOfTheCallers) {
  AdmissionLimits limits;
  Admission admission(limits);
  std::list<Lease> held;
  std::vector<std::string> connections;
  for (int i = 0; i < 17; ++i) connections.push_back(absl::StrCat("ipv4:192.0.2.7:", 40'000 + i));
  for (const std::string& connection : connections) {
    const Party party{connection, Front::kGrpc, /*everybody=*/true};
    for (int i = 0; i < 1'000; ++i) {
      auto lease = admission.Stream(party);
      if (lease.ok()) held.push_back(*std::move(lease));
    }
  }
  EXPECT_LE(held.size(), 1'024);
  EXPECT_EQ(admission.Stats().streams, 0);
  EXPECT_GT(admission.Stats().refused_public, 15'000);
  EXPECT_TRUE(admission.Stream(kAnn).ok());
  const absl::Status of_one = admission.Stream({connections[0], Front::kGrpc, true}).status();
  ExpectBusy(of_one);
  EXPECT_THAT(std::string(of_one.message()),
              HasSubstr("this connection has 512 of 1024 open streams that public calls may have"));
  // A connection that has none gets one.
  EXPECT_TRUE(admission.Stream({"ipv4:192.0.2.8:1", Front::kGrpc, true}).ok());
}

TEST(AdmissionTest, ARefusalSaysWhosePlacesAreTaken) {
  AdmissionLimits limits;
  limits.callers.downloads = 4;
  Admission admission(limits);
  std::list<Lease> held;
  EXPECT_EQ(TakeAll([&] { return admission.Download(kEve, "e"); }, held), 2);
  EXPECT_THAT(std::string(admission.Download(kEve, "e").status().message()),
              AllOf(HasSubstr("this caller has 2 of the server's 4 open downloads, which is its "
                              "part now; end one first"),
                    HasSubstr("try again in 1s")));
  held.push_back(*admission.Download(kAnn, "a"));
  held.push_back(*admission.Download(kBob, "b"));
  EXPECT_THAT(std::string(admission.Download({"c"}, "c").status().message()),
              HasSubstr("others have all of the server's 4 open downloads"));
  limits.callers.request_bytes = 1 << 20;
  Admission bytes(limits);
  auto first = bytes.Request(kEve, 400 << 10, Effect::kReads);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(std::string(bytes.Request(kEve, 400 << 10, Effect::kReads).status().message()),
              HasSubstr("this caller has 409600 of the server's 1048576 bytes of requests under "
                        "way, and 409600 more do not fit into its part now"));
  EXPECT_THAT(std::string(bytes.Request(kAnn, 700 << 10, Effect::kReads).status().message()),
              HasSubstr("others have so many of the server's 1048576 bytes of requests under way "
                        "that 716800 more do not fit now"));
}

TEST(AdmissionTest, SmallRequestsAndAnswersTakeNoBytes) {
  int64_t freed = 0;
  AdmissionLimits limits;
  limits.callers.request_bytes = 200;
  limits.callers.answer_bytes = 200;
  limits.small_request_bytes = 10;
  limits.small_answer_bytes = 5;
  Admission admission(limits, [&](int64_t bytes) { freed += bytes; });
  auto first = admission.Request(kEve, 90, Effect::kReads);
  ASSERT_TRUE(first.ok());
  ExpectBusy(admission.Request(kEve, 60, Effect::kReads).status());
  EXPECT_EQ(freed, 60) << "what was refused is not needed any more";
  auto small = admission.Request(kEve, 10, Effect::kReads);
  EXPECT_TRUE(small.ok());
  EXPECT_EQ(admission.Stats().request_bytes, 90);
  EXPECT_EQ(admission.Stats().requests, 2);
  EXPECT_EQ(admission.Stats().refused_requests, 1);

  small = admission.Answer(*std::move(small), 5);
  EXPECT_EQ(admission.Stats().answer_bytes, 0);
  first = admission.Answer(*std::move(first), 80);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(admission.Stats().request_bytes, 0) << "the answer takes the request's place";
  EXPECT_EQ(admission.Stats().answer_bytes, 80);
  EXPECT_EQ(admission.Stats().requests, 2) << "until it is sent";
  auto third = admission.Request(kEve, 0, Effect::kReads);
  ExpectBusy(admission.Answer(*std::move(third), 90).status());
  EXPECT_EQ(admission.Stats().refused_answers, 1);
  EXPECT_EQ(admission.Stats().requests, 2) << "a refused answer needs no place";
  EXPECT_TRUE(admission.Answer(*admission.Request(kAnn, 0, Effect::kReads), 60).ok());
  auto message = admission.Message(kEve, 15, Effect::kReads);
  EXPECT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(admission.Stats().answer_bytes, 95);
  ExpectBusy(admission.Message(kEve, 90, Effect::kReads).status());
  EXPECT_TRUE(admission.Message(kEve, 90, Effect::kChanges).ok());
  EXPECT_TRUE(admission.Message(kEve, 5, Effect::kReads).ok());
  message = absl::CancelledError();
  first = absl::CancelledError();
  small = absl::CancelledError();
  EXPECT_EQ(admission.Stats().answer_bytes, 0);
  EXPECT_EQ(admission.PartiesNow(), 0);
}

TEST(AdmissionTest, WhatWasDoneIsAnsweredAndRefusedBeforeIfAnswersAreNotRead) {
  AdmissionLimits limits;
  limits.callers.answer_bytes = 1 << 20;
  Admission admission(limits);
  auto unread = admission.Answer(*admission.Request(kEve, 0, Effect::kReads), 400 << 10);
  ASSERT_TRUE(unread.ok()) << unread.status();
  ExpectBusy(admission.Request(kEve, 0, Effect::kChanges).status());
  EXPECT_TRUE(admission.Request(kEve, 0, Effect::kReads).ok());
  auto change = admission.Request(kAnn, 0, Effect::kChanges);
  ASSERT_TRUE(change.ok()) << change.status();
  auto all = admission.Answer(*admission.Request(kBob, 0, Effect::kReads), 200 << 10);
  auto others = admission.Answer(*admission.Request({"c"}, 0, Effect::kReads), 200 << 10);
  ExpectBusy(admission.Answer(*admission.Request(kAnn, 0, Effect::kReads), 300 << 10).status());
  EXPECT_TRUE(admission.Answer(*std::move(change), 300 << 10).ok()) << "it is done";
}

TEST(AdmissionTest, ABodyTakesWhatHasArrivedAndItsPlaceWhenItIsWhole) {
  AdmissionLimits limits;
  limits.callers.request_bytes = 1'000;
  limits.small_request_bytes = 10;
  Admission admission(limits);
  auto body = admission.Arriving(kEve, 100, {});
  body = admission.Arriving(kEve, 500, *std::move(body));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(admission.Stats().request_bytes, 500);
  EXPECT_EQ(admission.Stats().requests, 0);
  body = admission.Request(kEve, 600, Effect::kReads, *std::move(body));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(admission.Stats().request_bytes, 600);
  EXPECT_EQ(admission.Stats().requests, 1);
  auto refused = admission.Arriving(kAnn, 100, {});
  refused = admission.Arriving(kAnn, 400, *std::move(refused));
  ExpectBusy(refused.status());
  EXPECT_EQ(admission.Stats().request_bytes, 600) << "what had arrived of it is let go";
}

TEST(AdmissionTest, WhatARequestHasIsNotAskedForAgain) {
  AdmissionLimits limits;
  limits.callers.requests = 64;
  Admission admission(limits);
  std::list<Lease> eves;
  std::list<Lease> anns;
  EXPECT_EQ(TakeAll([&] { return admission.Request(kEve, 0, Effect::kReads); }, eves), 32);
  EXPECT_EQ(TakeAll([&] { return admission.Request(kAnn, 0, Effect::kReads); }, anns), 16);
  // By now she holds more than her part.
  EXPECT_TRUE(admission.Answer(std::move(eves.front()), 1 << 20).ok());
}

TEST(AdmissionTest, AConnectionHasItsDownloads) {
  AdmissionLimits limits;
  limits.downloads_per_connection = 2;
  Admission admission(limits);
  std::list<Lease> held;
  EXPECT_EQ(TakeAll([&] { return admission.Download(kAnn, "one"); }, held), 2);
  EXPECT_EQ(TakeAll([&] { return admission.Download(kAnn, "other"); }, held), 2);
  EXPECT_EQ(admission.Stats().refused_downloads, 2);
  held.pop_front();
  EXPECT_TRUE(admission.Download(kAnn, "one").ok());
}

class MemoryTrimmerTest : public ::testing::Test {
 protected:
  void AwaitTrims(int count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return trims_ >= count; };
    mutex_.Await(absl::Condition(&enough));
  }
  int Trims() {
    absl::MutexLock lock(&mutex_);
    return trims_;
  }

  fakes::FakeClock clock_;
  absl::Mutex mutex_;
  int trims_ = 0;
  MemoryTrimmer trimmer_{clock_, [this] {
                           absl::MutexLock lock(&mutex_);
                           ++trims_;
                         }};
};

TEST_F(MemoryTrimmerTest, TrimsOnceASecondAfterMuchWasFreed) {
  trimmer_.Freed(MemoryTrimmer::kWorthIt - 1);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Trims(), 0) << "not worth it yet";
  for (int i = 0; i < 10; ++i) trimmer_.Freed(MemoryTrimmer::kWorthIt);
  EXPECT_EQ(Trims(), 0) << "the burst may go on";
  clock_.Advance(absl::Seconds(1));
  AwaitTrims(1);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Trims(), 1) << "once a burst";
  trimmer_.Freed(MemoryTrimmer::kWorthIt);
  clock_.Advance(absl::Seconds(1));
  AwaitTrims(2);
}

TEST_F(MemoryTrimmerTest, TrimsWhenAJobHasRun) {
  trimmer_.OnJobState({}, wan::v1::JOB_STATE_UNSPECIFIED);
  trimmer_.OnJobState({}, wan::v1::JOB_STATE_QUEUED);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Trims(), 0);
  trimmer_.OnJobState({}, wan::v1::JOB_STATE_RUNNING);
  clock_.Advance(absl::Seconds(1));
  AwaitTrims(1);
}

TEST_F(MemoryTrimmerTest, TrimsWhenAModelHasBeenLoadedOrCouldNotBe) {
  wan::v1::Model model;
  model.set_state(wan::v1::MODEL_STATE_LOADING);
  trimmer_.OnModelState(model);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Trims(), 0);
  model.set_state(wan::v1::MODEL_STATE_FAILED);
  trimmer_.OnModelState(model);
  clock_.Advance(absl::Seconds(1));
  AwaitTrims(1);
}

}  // namespace
}  // namespace wan::server
