// The wall clock is set forward and back by days while jobs wait and run.
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

constexpr char kHeld[] = "Step_2_Inference";

class ClockJumpTest : public ServiceTest, public testing::WithParamInterface<int> {
 protected:
  absl::Duration jump() const { return absl::Hours(24 * GetParam()); }
};

TEST_P(ClockJumpTest, ADeadlineIsATimeOfTheWallClock) {
  Open();
  engine_->Hold(kHeld);
  Create();
  engine_->AwaitHeld(kHeld);
  wan::v1::GenerationRequest request = Request();
  *request.mutable_deadline() = ToProto(clock_.Now() + absl::Hours(1));
  const std::string job = Create(request);
  clock_.Jump(jump());
  if (GetParam() < 0) {
    clock_.Advance(absl::Hours(2));
    EXPECT_EQ(Get(job).state(), wan::v1::JOB_STATE_QUEUED) << "it is days away now";
    clock_.Jump(-jump());  // the clock is put right
  }
  const auto events = BlockingReader(*service_, job).Rest();
  EXPECT_EQ(Brief(events.back()), "cancelled deadline exceeded");
  engine_->Release(kHeld);
}

TEST_P(ClockJumpTest, AJobPaysForTheTimeForWhichItHeldTheDevice) {
  Open();
  engine_->Hold(kHeld);
  const std::string job = Create();
  engine_->AwaitHeld(kHeld);
  clock_.Advance(absl::Seconds(5));
  clock_.Jump(jump());
  engine_->Release(kHeld);
  BlockingReader(*service_, job).Rest();
  EXPECT_GE(Get(job).device_seconds(), 5);
  EXPECT_LT(Get(job).device_seconds(), 3600);
}

INSTANTIATE_TEST_SUITE_P(ByDays, ClockJumpTest, testing::Values(-3, 3), [](const auto& days) {
  return days.param < 0 ? std::string("Back") : std::string("Forward");
});

}  // namespace
}  // namespace wan::server
