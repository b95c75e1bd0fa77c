#include "engine/text/charsmap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/text/spiece_model.h"
#include "tests/engine/text/text_cases.h"

namespace wan {
namespace {

std::string GoldenRules() {
  const absl::StatusOr<SpieceModel> model = ReadSpieceModel(GoldenTokenizerPath());
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->charsmap : "";
}

std::string Normalize(std::string_view text) {
  static const absl::StatusOr<Charsmap>* map =
      new absl::StatusOr<Charsmap>(Charsmap::Parse(GoldenRules()));
  EXPECT_TRUE(map->ok()) << map->status();
  return map->ok() ? (*map)->Normalize(text) : "";
}

struct Rule {
  const char* what;
  std::string text;
  std::string normal;
};

class CharsmapTest : public ::testing::TestWithParam<Rule> {};

TEST_P(CharsmapTest, Normalizes) { EXPECT_EQ(Normalize(GetParam().text), GetParam().normal); }

// Expected values: the normalizer of tokenizers 0.23.3 with the golden rules.
INSTANTIATE_TEST_SUITE_P(
    Table, CharsmapTest,
    ::testing::Values(Rule{"Unchanged", "a red cat, \u732B", "a red cat, \u732B"},  //
                      Rule{"Empty", "", ""}, Rule{"Compatibility", "\u00B2\u2122\u2167", "2TMVIII"},
                      Rule{"Composition", "cafe\u0301", "caf\u00E9"},
                      Rule{"WordStartSign", "\u2581a", " a"},
                      Rule{"ZeroWidthSpace", "a\u200Bb", "a b"},
                      // Graphemes below six bytes become the replacement of their first part.
                      Rule{"AccentAfterKeyIsLost", "\u00B2\u0301x", "2x"},
                      Rule{"SelectorAfterKeyIsLost", "m\u00B2\uFE0F", "m2"},
                      Rule{"SecondAccentIsLost", "e\u0301\u0327", "\u00E9"},
                      Rule{"AccentAfterOtherStays", "\u00A9\uFE0F", "\u00A9\uFE0F"},
                      // Six bytes and more go by code point: nothing is lost, and nothing composed.
                      Rule{"LongGraphemeKeepsAccent", "\u2122\uFE0F", "TM\uFE0F"},
                      Rule{"LongGraphemeIsNotComposed", "e\u0301\u0300\u0327",
                           "e\u0301\u0300\u0327"},
                      // These rules make U+FFFD a space.
                      Rule{"Malformed", "a\xC3z\xFF", "a z "}),
    [](const auto& info) { return info.param.what; });

TEST(Charsmap, WithoutRulesOnlyMalformedBytesChange) {
  const absl::StatusOr<Charsmap> map = Charsmap::Parse("");
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->Normalize("\u00B2 e\u0301"), "\u00B2 e\u0301");
  EXPECT_EQ(map->Normalize("a\xC3z\xFF"), "a\uFFFDz\uFFFD");
}

TEST(Charsmap, RefusesPartsThatDoNotFit) {
  const std::string rules = GoldenRules();
  ASSERT_GT(rules.size(), 2048U);
  std::string huge = rules;
  huge[3] = '\x7F';
  std::string uneven = rules;
  uneven[0] = static_cast<char>(uneven[0] ^ 1);
  std::string open_ended = rules;
  open_ended.back() = 'x';
  const std::string all_trie = rules.substr(0, 4) + std::string(1024, 'a');
  for (const std::string& damaged : {rules.substr(0, 3), rules.substr(0, 4), rules.substr(0, 1000),
                                     huge, uneven, open_ended, all_trie, std::string(4, '\0')}) {
    EXPECT_EQ(Charsmap::Parse(damaged).status().code(), absl::StatusCode::kDataLoss)
        << damaged.size() << " bytes";
  }
}

// A map with the one key "a". `link`: distance from the unit of 'a' to that of its value; `root`:
// where the children of the root are.
std::string OneKey(uint32_t root, uint32_t link, uint32_t value) {
  std::vector<uint32_t> trie(256);
  trie[0] = root << 10;
  trie['a'] = 'a' | 1U << 8 | link << 10;
  trie['a' ^ 4] = 1U << 31 | value;
  const auto bytes = static_cast<uint32_t>(trie.size() * sizeof(uint32_t));
  std::string compiled(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  compiled.append(reinterpret_cast<const char*>(trie.data()), bytes);
  return compiled + std::string("long\0short\0", 11);
}

std::string NormalizeA(const std::string& compiled) {
  const absl::StatusOr<Charsmap> map = Charsmap::Parse(compiled);
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? map->Normalize("ab") : "";
}

TEST(Charsmap, FollowsLinks) {
  EXPECT_EQ(NormalizeA(OneKey(0, 4, 0)), "longb");
  EXPECT_EQ(NormalizeA(OneKey(0, 4, 5)), "shortb");
}

// Links of a damaged file may lead anywhere. Outside they find nothing.
TEST(Charsmap, LinksThatLeadOutEndTheSearch) {
  for (const uint32_t far : {256U, 1U << 19, (1U << 21) - 256}) {
    EXPECT_EQ(NormalizeA(OneKey(far, 4, 0)), "ab") << far;
    EXPECT_EQ(NormalizeA(OneKey(0, far, 0)), "ab") << far;
  }
  EXPECT_EQ(NormalizeA(OneKey(0, 4, 11)), "ab");
  EXPECT_EQ(NormalizeA(OneKey(0, 4, 0x7FFFFFFF)), "ab");
}

}  // namespace
}  // namespace wan
