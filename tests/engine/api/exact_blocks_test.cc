#include "engine/api/exact_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(ExactBlocksTest, NamesBlocksOfTransformersOfAnyLength) {
  const ExactBlocks blocks = ExactBlocks::Parse("4-5,0,last").value();
  EXPECT_THAT(blocks.In(30), ElementsAre(0, 4, 5, 29));
  EXPECT_THAT(blocks.In(6), ElementsAre(0, 4, 5));
  EXPECT_THAT(blocks.In(5), ElementsAre(0, 4));
  EXPECT_THAT(blocks.In(1), ElementsAre(0));
  EXPECT_EQ(blocks.ToString(), "4-5,0,last");
  EXPECT_EQ(ExactBlocks::Parse(blocks.ToString()).value(), blocks);
}

TEST(ExactBlocksTest, NoTextMeansNoBlocks) {
  EXPECT_THAT(ExactBlocks::Parse("").value().In(30), IsEmpty());
  EXPECT_EQ(ExactBlocks::Parse("").value().ToString(), "");
}

TEST(ExactBlocksTest, AnyOtherTextIsRefused) {
  for (const std::string text :
       {"a", "-1", "5-4", "1-", "0,,1", "0 1", "1-last", "1000", "+1", "0x1"}) {
    const absl::Status status = ExactBlocks::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), StartsWith("is '" + text + "'; must be numbers of"));
  }
}

}  // namespace
}  // namespace wan
