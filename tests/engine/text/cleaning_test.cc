#include "engine/text/cleaning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "tests/engine/text/text_cases.h"

namespace wan {
namespace {

using ::testing::HasSubstr;

// Groups that are about the repair of damaged encodings, which CleanPrompt leaves out.
bool IsOutOfScope(const std::string& group) {
  static const std::set<std::string> kGroups = {"one_signal", "lossy", "inconsistent", "lookalike"};
  return group.starts_with("mojibake") || kGroups.contains(group);
}

// Cases of the other groups whose result hangs on that repair all the same.
const std::set<std::string>& CasesThatNeedRepair() {
  static const std::set<std::string> kNames = {
      "control-sub",                  // an e with accent read as windows-1252
      "surrogates-cesu-emoji",        // surrogates written as UTF-8, read as ISO-8859-1
      "surrogates-cesu-cjk",          // likewise
      "edge-a-grave-before-newline",  // byte C0 before a line end
      "mixed-mojibake-and-entities",  // windows-1252 mojibake among entities
  };
  return kNames;
}

std::string Clean(std::string_view raw) {
  const absl::StatusOr<std::string> cleaned = CleanPrompt(raw);
  EXPECT_TRUE(cleaned.ok()) << cleaned.status();
  return cleaned.value_or("");
}

TEST(CleanPromptGolden, EveryCaseInScopeIsEqual) {
  std::map<std::string, int> equal_by_group;
  for (const auto& golden : GoldenCleaning()) {
    const std::string name = golden["name"];
    if (IsOutOfScope(golden["group"]) || CasesThatNeedRepair().contains(name)) continue;
    EXPECT_EQ(Clean(golden["raw"].get<std::string>()), golden["cleaned"].get<std::string>())
        << name;
    ++equal_by_group[golden["group"]];
  }
  const std::map<std::string, int> expected = {
      {"plain", 12},     {"whitespace", 12}, {"html", 22},    {"quotes", 6},
      {"ligatures", 6},  {"width", 10},      {"terminal", 5}, {"control", 10},
      {"surrogates", 4}, {"nfc", 9},         {"edge", 11},    {"mixed", 4}};
  EXPECT_EQ(equal_by_group, expected);
}

// Keeps the list of exceptions honest: a case that starts to hold has to leave it.
TEST(CleanPromptGolden, ExceptionsStillNeedTheRepair) {
  std::set<std::string> found;
  for (const auto& golden : GoldenCleaning()) {
    const std::string name = golden["name"];
    if (!CasesThatNeedRepair().contains(name)) continue;
    found.insert(name);
    EXPECT_NE(Clean(golden["raw"].get<std::string>()), golden["cleaned"].get<std::string>())
        << name;
  }
  EXPECT_EQ(found, CasesThatNeedRepair());
}

// Most of what looks like mojibake and must stay does stay; the counts are what the reference gives
// with its repair switched off.
TEST(CleanPromptGolden, CountsGroupsOutOfScope) {
  std::map<std::string, std::pair<int, int>> held;
  for (const auto& golden : GoldenCleaning()) {
    const std::string group = golden["group"];
    if (!IsOutOfScope(group)) continue;
    auto& [equal, all] = held[group.starts_with("mojibake") ? "mojibake*" : group];
    equal += Clean(golden["raw"].get<std::string>()) == golden["cleaned"].get<std::string>();
    ++all;
  }
  for (const auto& [group, counts] : held) {
    std::printf("out of scope: %-12s %2d of %2d hold\n", group.c_str(), counts.first,
                counts.second);
  }
  const std::map<std::string, std::pair<int, int>> expected = {{"mojibake*", {1, 46}},
                                                               {"one_signal", {0, 26}},
                                                               {"lossy", {1, 19}},
                                                               {"inconsistent", {1, 10}},
                                                               {"lookalike", {14, 16}}};
  EXPECT_EQ(held, expected);
}

TEST(CleanPromptReference, RandomPromptsAreEqual) {
  for (const auto& reference : RandomReference()) {
    const std::string raw = reference["raw"];
    EXPECT_EQ(Clean(raw), reference["cleaned"].get<std::string>())
        << reference["raw"].dump(-1, ' ', true);
  }
}

TEST(CleanPrompt, KeepsZeroBytesOutAndLengthsRight) {
  EXPECT_EQ(Clean(std::string_view("a\0b", 3)), "ab");
}

// A literal '<' ends the resolving of entities for the later lines, and so their uncurled quotes.
TEST(CleanPrompt, LiteralLessThanCountsFromItsLineOn) {
  EXPECT_EQ(Clean("&ldquo;a&rdquo;\n<i>\n&ldquo;b&rdquo;"), "\"a\" <i> \u201Cb\u201D");
  EXPECT_EQ(Clean("&lt;i>\n&ldquo;b&rdquo;"), "<i> \"b\"");
}

TEST(CleanPrompt, ResolvesOneLevelBeforeTerminalEscapes) {
  // In the first round the number is not there yet, and the escape character goes alone.
  EXPECT_EQ(Clean("\x1B[3&amp;#109;x"), "[3mx");
  EXPECT_EQ(Clean("\x1B[3&#109;x"), "x");
}

// Longer ones are left to the last steps, after which nothing uncurls a quote.
TEST(CleanPrompt, FirstStepReadsEntitiesOfUpTo24Characters) {
  EXPECT_EQ(Clean("&#" + std::string(21, '0') + "147;"), "\"");
  EXPECT_EQ(Clean("&#" + std::string(22, '0') + "147;"), "\u201C");
}

// 100,000 levels, each of which needs the one inside it: &#5&#50;... A round a level would take
// hours.
TEST(CleanPrompt, DeepNestingTakesLinearTime) {
  const std::map<char, std::pair<const char*, char>> inner = {{'4', {"&#5", '2'}},
                                                              {'2', {"&#5", '0'}},
                                                              {'0', {"&#4", '8'}},
                                                              {'8', {"&#5", '6'}},
                                                              {'6', {"&#5", '4'}}};
  constexpr int kLevels = 100'000;
  std::string nested;
  char digit = '4';
  for (int level = 0; level < kLevels; ++level) {
    nested += inner.at(digit).first;
    digit = inner.at(digit).second;
  }
  nested += digit + std::string(kLevels, ';');
  EXPECT_EQ(Clean("caf\u00E9 " + nested), "caf\u00E9 4");

  std::string ampersands = "&";
  for (int level = 0; level < kLevels; ++level) ampersands += "amp;";
  EXPECT_EQ(Clean(ampersands), "&");
}

// The limit of a segment is a limit on what can be joined across it.
TEST(CleanPrompt, SegmentsEndAfterAMillionCodePoints) {
  const std::string filler(999'999, 'a');
  EXPECT_EQ(Clean(filler + "e\u0301"), filler + "e\u0301");
  EXPECT_EQ(Clean(filler.substr(1) + "e\u0301"), filler.substr(1) + "\u00E9");
}

struct InvalidText {
  const char* what;
  std::string bytes;
  int offset;
};

class CleanPromptInvalid : public ::testing::TestWithParam<InvalidText> {};

TEST_P(CleanPromptInvalid, NamesTheOffset) {
  const absl::StatusOr<std::string> cleaned = CleanPrompt(GetParam().bytes);
  ASSERT_FALSE(cleaned.ok());
  EXPECT_EQ(cleaned.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cleaned.status().message()),
              HasSubstr("at offset " + std::to_string(GetParam().offset) + " "));
}

INSTANTIATE_TEST_SUITE_P(Table, CleanPromptInvalid,
                         ::testing::Values(InvalidText{"StrayContinuation", "ab\x80", 2},
                                           InvalidText{"CutAtTheEnd", "caf\xC3", 3},
                                           InvalidText{"CutInTheMiddle", "\xE7\x8C!", 0},
                                           InvalidText{"Overlong", "a\xC0\xAF", 1},
                                           InvalidText{"OverlongThree", "\u732B\xE0\x80\xAF", 3},
                                           InvalidText{"Surrogate", "ab\xED\xA0\x80", 2},
                                           InvalidText{"BeyondUnicode", "\xF4\x90\x80\x80", 0},
                                           InvalidText{"NoSuchByte", "\U0001F98A\xFF", 4}),
                         [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace wan
