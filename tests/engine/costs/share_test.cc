#include "engine/costs/share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan {
namespace {

using testing::ElementsAre;

TEST(SharesTest, FollowEachOtherAndDifferByOneAtMost) {
  EXPECT_THAT(SharesOf(12, 3), ElementsAre(Share{0, 4}, Share{4, 4}, Share{8, 4}));
  EXPECT_THAT(SharesOf(11, 3), ElementsAre(Share{0, 4}, Share{4, 4}, Share{8, 3}));
  EXPECT_THAT(SharesOf(10, 4), ElementsAre(Share{0, 3}, Share{3, 3}, Share{6, 2}, Share{8, 2}));
}

TEST(SharesTest, SomeAreEmptyIfThereIsTooLittle) {
  EXPECT_THAT(SharesOf(1, 2), ElementsAre(Share{0, 1}, Share{1, 0}));
}

}  // namespace
}  // namespace wan
