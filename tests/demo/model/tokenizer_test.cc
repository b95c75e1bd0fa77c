// The tokenizer of the demo model in the repository.
#include "engine/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace wan {
namespace {

using testing::Contains;
using testing::Not;

const Tokenizer& TheTokenizer() {
  static const auto* const tokenizer = new absl::StatusOr<std::unique_ptr<Tokenizer>>(
      Tokenizer::Load(WAN_DEMO_MODEL "/google/umt5-xxl/spiece.model"));
  EXPECT_TRUE(tokenizer->ok()) << tokenizer->status();
  return ***tokenizer;
}

// Its normalization rules fold case, so that the model needs not learn what capitals mean.
TEST(DemoTokenizer, CapitalsGiveTheSameTokens) {
  const std::vector<int64_t> expected =
      TheTokenizer().Encode("a green heart rises over a light blue background.");
  EXPECT_THAT(expected, Not(Contains(Tokenizer::kUnknownId)));
  for (const std::string text : {"A green heart rises over a light blue background.",
                                 "A Green Heart rises over a Light Blue background.",
                                 "A GREEN HEART RISES OVER A LIGHT BLUE BACKGROUND.",
                                 "a gReEn hEArt risEs oveR A ligHt bLUE backGround."}) {
    EXPECT_EQ(TheTokenizer().Encode(text), expected) << text;
  }
}

// The ids are those of the embeddings that were trained.
TEST(DemoTokenizer, LowerCaseKeepsItsIds) {
  EXPECT_EQ(TheTokenizer().vocabulary_size(), 480 + Tokenizer::kExtraIds);
  EXPECT_EQ(TheTokenizer().Encode("a red circle"), (std::vector<int64_t>{3, 118, 90, 1}));
}

}  // namespace
}  // namespace wan
