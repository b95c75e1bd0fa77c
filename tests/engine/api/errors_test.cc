#include "engine/api/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan {
namespace {

TEST(ErrorsTest, EveryViolationSurvivesTheStatus) {
  const std::vector<FieldViolation> violations = {{"width", "is 33; must be a multiple of 32"},
                                                  {"guidance_scale[1]", "is -1; must be 0 to 100"}};
  const absl::Status status = InvalidFields(violations);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldViolationsOf(status), violations);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("width: is 33"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("guidance_scale[1]: is -1"));
}

TEST(ErrorsTest, AtMost100ViolationsAreKeptAndTheRestIsCounted) {
  const std::vector<FieldViolation> violations(250, {"outputs[0]", "is 9"});
  const absl::Status status = InvalidFields(violations);
  const std::vector<FieldViolation> kept = FieldViolationsOf(status);
  EXPECT_EQ(ViolationCountOf(status), 250u);
  ASSERT_EQ(kept.size(), kMaxViolations + 1);
  EXPECT_EQ(kept.back(), (FieldViolation{"", "and 150 more violations"}));
  EXPECT_THAT(std::string(status.message()), testing::EndsWith("; and 150 more violations"));
}

TEST(ErrorsTest, OtherStatusesHaveNoViolations) {
  EXPECT_TRUE(FieldViolationsOf(absl::InvalidArgumentError("x")).empty());
  EXPECT_TRUE(FieldViolationsOf(absl::OkStatus()).empty());
}

TEST(ErrorsTest, ReasonTravelsWithCodeAndMessage) {
  const absl::Status status = WithReason(absl::UnavailableError("later"), "QUEUE_FULL");
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "later");
  EXPECT_EQ(ReasonOf(absl::UnavailableError("later")), "");
}

}  // namespace
}  // namespace wan
