#include "engine/text/unigram.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace wan {
namespace {

constexpr int64_t kUnknown = 0;

std::vector<int64_t> Segment(const std::vector<SpieceModel::Piece>& pieces, std::string_view word) {
  std::vector<int64_t> ids;
  UnigramModel(pieces, kUnknown).Segment(word, ids);
  return ids;
}

TEST(UnigramModel, TakesTheHighestSum) {
  const std::vector<SpieceModel::Piece> pieces = {{"<unk>", 0}, {"a", -2},   {"b", -2},
                                                  {"ab", -3},   {"abc", -9}, {"c", -2}};
  EXPECT_EQ(Segment(pieces, "ab"), (std::vector<int64_t>{3}));
  EXPECT_EQ(Segment(pieces, "abc"), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(Segment(pieces, "cba"), (std::vector<int64_t>{5, 2, 1}));
  EXPECT_TRUE(Segment(pieces, "").empty());
}

TEST(UnigramModel, AppendsToWhatIsThere) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}}, kUnknown);
  std::vector<int64_t> ids = {7, kUnknown};
  model.Segment("?a", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{7, kUnknown, kUnknown, 1}));
}

TEST(UnigramModel, RunOfUncoveredCharactersIsOneId) {
  const std::vector<SpieceModel::Piece> pieces = {{"<unk>", 0}, {"a", -2}, {"\u732B", -3}};
  EXPECT_EQ(Segment(pieces, "\u72AC\U0001F98Aa??"), (std::vector<int64_t>{kUnknown, 1, kUnknown}));
  EXPECT_EQ(Segment(pieces, "?\u732B?"), (std::vector<int64_t>{kUnknown, 2, kUnknown}));
}

// "ab" and "c" are worth -30. An unknown "a" is worth -25, so the score of "bc" decides.
TEST(UnigramModel, UncoveredCharacterCostsTenMoreThanTheWorstPiece) {
  const auto segment = [](float bc) {
    return Segment({{"<unk>", 0}, {"ab", -15}, {"c", -15}, {"bc", bc}}, "abc");
  };
  EXPECT_EQ(segment(-4.99F), (std::vector<int64_t>{kUnknown, 3}));
  EXPECT_EQ(segment(-5.01F), (std::vector<int64_t>{1, 2}));
}

// A text of one letter ties in many ways. Sums in single precision break the ties at random; in
// double they are exact, and the odd letter comes first.
TEST(UnigramModel, EqualSumsResolveTheSameWayAtAnyLength) {
  const std::vector<SpieceModel::Piece> pieces = {
      {"<unk>", 0}, {"\u2581s", -6.137F}, {"o", -5.0713F}, {"oo", -7.3391F}};
  for (int length = 1; length <= 301; length += 2) {
    std::vector<int64_t> expected = {1, 2};
    expected.resize(2 + length / 2, 3);
    EXPECT_EQ(Segment(pieces, "\u2581s" + std::string(length, 'o')), expected) << length;
  }
}

// The order of the pieces in the file has nothing to do with that of their texts.
TEST(UnigramModel, FindsPiecesInAnyOrderAndWithHighBytes) {
  const std::vector<SpieceModel::Piece> pieces = {
      {"<unk>", 0},   {"\u732B\u732B", -1},  {"z", -1}, {"\u00E9t", -1}, {"a", -1},
      {"\u732B", -4}, {"\u00E9t\u00E9", -1}, {"zz", -1}};
  EXPECT_EQ(Segment(pieces, "\u732B\u732B\u732Bzzz\u00E9t\u00E9a"),
            (std::vector<int64_t>{5, 1, 2, 7, 6, 4}));
}

}  // namespace
}  // namespace wan
