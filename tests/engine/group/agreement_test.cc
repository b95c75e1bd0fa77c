#include "engine/group/agreement.h"

#include <gtest/gtest.h>

namespace wan {
namespace {

TEST(AgreementTest, TheFirstAtAPointDecidesForThoseThatComeLater) {
  Agreement agreement;
  std::stop_source stop;
  agreement.Begin(stop.get_token());
  EXPECT_TRUE(agreement.At(0).ok());
  EXPECT_TRUE(agreement.At(1).ok());
  stop.request_stop();
  // Another rank passed both points already.
  EXPECT_TRUE(agreement.At(0).ok());
  EXPECT_TRUE(agreement.At(1).ok());
  EXPECT_TRUE(absl::IsCancelled(agreement.At(2)));
  EXPECT_TRUE(absl::IsCancelled(agreement.At(2)));
}

TEST(AgreementTest, AFailureEndsAllAtOnceAndTheFirstCounts) {
  Agreement agreement;
  agreement.Begin({});
  EXPECT_TRUE(agreement.At(5).ok());
  agreement.Fail(absl::ResourceExhaustedError("rank 1 has no memory"));
  agreement.Fail(absl::InternalError("a consequence"));
  EXPECT_TRUE(absl::IsResourceExhausted(agreement.At(5)));
  EXPECT_TRUE(absl::IsResourceExhausted(agreement.failure()));
}

TEST(AgreementTest, BeginsAnew) {
  Agreement agreement;
  std::stop_source stop;
  stop.request_stop();
  agreement.Begin(stop.get_token());
  EXPECT_FALSE(agreement.At(0).ok());
  agreement.Fail(absl::InternalError("broken"));
  agreement.Begin({});
  EXPECT_TRUE(agreement.At(0).ok());
  EXPECT_TRUE(agreement.failure().ok());
}

}  // namespace
}  // namespace wan
