#include "server/calls/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <optional>

#include "engine/api/errors.h"
#include "server/calls/memory_trimmer.h"
#include "server/conversion/errors.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

constexpr AdmissionLimits kLimits = {/*request_bytes=*/100, /*small_request_bytes=*/10,
                                     /*streams=*/2, /*downloads=*/3,
                                     /*downloads_per_connection=*/2};

void ExpectBusy(const absl::Status& status) {
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), kReasonServerBusy);
  EXPECT_TRUE(RetryDelayOf(status).has_value());
}

TEST(AdmissionTest, RequestsMayHaveTheirBytesTogetherAndSmallOnesAlwaysPass) {
  int64_t freed = 0;
  Admission admission(kLimits, [&](int64_t bytes) { freed += bytes; });
  auto first = admission.Request(60);
  auto second = admission.Request(40);
  ASSERT_TRUE(first.ok() && second.ok());
  ExpectBusy(admission.Request(11).status());
  EXPECT_EQ(freed, 11) << "what was refused is not needed any more";
  auto small = admission.Request(10);
  EXPECT_TRUE(small.ok());
  EXPECT_EQ(admission.Stats().request_bytes, 110);
  EXPECT_EQ(admission.Stats().refused_requests, 1);
  second = absl::CancelledError();
  small = absl::CancelledError();
  EXPECT_EQ(freed, 61);
  ExpectBusy(admission.Request(41).status());
  EXPECT_TRUE(admission.Request(40).ok());
  EXPECT_EQ(admission.Stats().request_bytes, 60);
}

TEST(AdmissionTest, RequestsAreLimitedHoweverSmall) {
  AdmissionLimits limits = kLimits;
  limits.requests = 2;
  Admission admission(limits);
  auto first = admission.Request(1);
  auto second = admission.Request(0);
  ASSERT_TRUE(first.ok() && second.ok());
  ExpectBusy(admission.Request(0).status());
  EXPECT_EQ(admission.Stats().requests, 2);
  EXPECT_EQ(admission.Stats().refused_requests, 1);
  first = absl::CancelledError();
  EXPECT_TRUE(admission.Request(1).ok());
}

TEST(AdmissionTest, StreamsAreLimited) {
  Admission admission(kLimits);
  auto first = admission.Stream();
  auto second = admission.Stream();
  ASSERT_TRUE(first.ok() && second.ok());
  ExpectBusy(admission.Stream().status());
  EXPECT_EQ(admission.Stats().streams, 2);
  EXPECT_EQ(admission.Stats().refused_streams, 1);
  first = absl::CancelledError();
  EXPECT_TRUE(admission.Stream().ok());
}

TEST(AdmissionTest, DownloadsAreLimitedInAllAndPerConnection) {
  Admission admission(kLimits);
  std::list<Admission::Lease> held;
  const auto enters = [&](const std::string& peer) {
    auto place = admission.Download(peer);
    if (!place.ok()) {
      ExpectBusy(place.status());
      return false;
    }
    held.push_back(*std::move(place));
    return true;
  };
  EXPECT_TRUE(enters("a"));
  EXPECT_TRUE(enters("a"));
  EXPECT_FALSE(enters("a")) << "two of one connection";
  EXPECT_TRUE(enters("b"));
  EXPECT_FALSE(enters("b")) << "three in all";
  EXPECT_EQ(admission.Stats().downloads, 3);
  EXPECT_EQ(admission.Stats().refused_downloads, 2);
  held.pop_front();
  EXPECT_TRUE(enters("b"));
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

}  // namespace
}  // namespace wan::server
