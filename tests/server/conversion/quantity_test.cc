#include "server/conversion/quantity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 50;

TEST(QuantityTest, EveryUnitOfBytes) {
  const struct {
    const char* text;
    uint64_t bytes;
  } kCases[] = {
      {"0", 0},
      {"0GiB", 0},
      {"1048576", 1 << 20},
      {"7B", 7},
      {"3kB", 3'000},
      {"3KB", 3'000},
      {"3KiB", 3 << 10},
      {"3MB", 3'000'000},
      {"1MiB", 1 << 20},
      {"24GB", 24'000'000'000},
      {"24GiB", uint64_t{24} << 30},
      {"2TB", 2'000'000'000'000},
      {"1024TiB", kMost},
      {"500 MB", 500'000'000},
      {"1.5GiB", uint64_t{3} << 29},
      {"44.25GiB", uint64_t{177} << 28},
      {"0.1KiB", 102},
      {"1125899906842623", kMost - 1},
  };
  for (const auto& c : kCases) EXPECT_EQ(ParseBytes(c.text, kMost), c.bytes) << c.text;
}

TEST(QuantityTest, OtherTextsAreNoBytes) {
  for (const char* const text : {"",
                                 " ",
                                 "-1",
                                 "-1GiB",
                                 "+1",
                                 "GiB",
                                 "24gib",
                                 "24G",
                                 "24Gi",
                                 "24GiBs",
                                 "1.5",
                                 "1.5B",
                                 "1e9",
                                 "nan",
                                 "inf",
                                 ".5GiB",
                                 "5.GiB",
                                 "1.2.3GiB",
                                 "1,5GiB",
                                 " 1GiB",
                                 "1GiB ",
                                 "1  GiB",
                                 "1025TiB",
                                 "1024.1TiB",
                                 "18446744073709551616",
                                 "99999999999999999999TiB"}) {
    EXPECT_EQ(ParseBytes(text, kMost), std::nullopt) << text;
  }
}

TEST(QuantityTest, BytesArePrintedAsTheyAreRead) {
  for (const char* const text : {"0", "7B", "1025KiB", "1MiB", "24GiB", "1024TiB", "999MiB"}) {
    EXPECT_EQ(BytesText(*ParseBytes(text, kMost)), text);
  }
}

TEST(QuantityTest, SecondsWithAndWithoutAUnit) {
  EXPECT_EQ(ParseSeconds("0", 10), 0);
  EXPECT_EQ(ParseSeconds("0.25", 10), 0.25);
  EXPECT_EQ(ParseSeconds("1e1", 10), 10);
  EXPECT_EQ(ParseSeconds("90s", 100), 90);
  EXPECT_EQ(ParseSeconds("15m", 1e4), 900);
  EXPECT_EQ(ParseSeconds("1.5h", 1e4), 5'400);
  EXPECT_EQ(ParseSeconds("30 d", 1e7), 30 * 86'400);
  for (const char* const text :
       {"", "s", "-1", "-1s", "nan", "inf", "11", "11s", "1ms", "1S", "1 "}) {
    EXPECT_EQ(ParseSeconds(text, 10), std::nullopt) << text;
  }
  for (const char* const text : {"0", "61s", "90m", "12h", "30d"}) {
    EXPECT_EQ(SecondsText(static_cast<int64_t>(*ParseSeconds(text, 1e7))), text);
  }
}

TEST(QuantityTest, TheRuleNamesTheRangeAndAnExample) {
  EXPECT_EQ(BytesRule(kMost),
            "a number of bytes from 0 to 1024TiB, with or without a unit (B, kB, KiB, MB, MiB, GB, "
            "GiB, TB, TiB), for example 24GiB");
  EXPECT_EQ(SecondsRule(1e9),
            "a number of seconds from 0 to 1000000000, with or without a unit (s, m, h, d), for "
            "example 90 or 1.5h");
}

}  // namespace
}  // namespace wan::server
