#include "engine/text/html_entities.h"

#include <gtest/gtest.h>

#include <string>

namespace wan {
namespace {

TEST(FindHtmlEntity, KnowsTheStandardsNames) {
  EXPECT_EQ(FindHtmlEntity("amp;"), U"&");
  EXPECT_EQ(FindHtmlEntity("amp"), U"&");
  EXPECT_EQ(FindHtmlEntity("AElig"), U"\u00C6");                 // the first of the table
  EXPECT_EQ(FindHtmlEntity("zwnj;"), U"\u200C");                 // the last
  EXPECT_EQ(FindHtmlEntity("NotEqualTilde;"), U"\u2242\u0338");  // two characters
  EXPECT_EQ(FindHtmlEntity("Afr;"), U"\U0001D504");
}

TEST(FindHtmlEntity, RejectsOtherNames) {
  for (const char* name : {"", ";", "hellip", "AMp;", "amp; ", "zzz;", "A"}) {
    EXPECT_EQ(FindHtmlEntity(name), std::nullopt) << name;
  }
}

TEST(Windows1252FromC1, KeepsUndefinedCodes) {
  EXPECT_EQ(Windows1252FromC1(0x80), char32_t{0x20AC});
  EXPECT_EQ(Windows1252FromC1(0x9F), char32_t{0x0178});
  for (const char32_t undefined : {0x81, 0x8D, 0x8F, 0x90, 0x9D}) {
    EXPECT_EQ(Windows1252FromC1(undefined), undefined);
  }
}

struct Reference {
  const char* what;
  std::u32string text;
  std::u32string value;
};

class UnescapeHtmlTest : public ::testing::TestWithParam<Reference> {};

TEST_P(UnescapeHtmlTest, Resolves) { EXPECT_EQ(UnescapeHtml(GetParam().text), GetParam().value); }

// Expected values: html.unescape of CPython 3.11.
INSTANTIATE_TEST_SUITE_P(
    Table, UnescapeHtmlTest,
    ::testing::Values(Reference{"Once", U"&amp;lt;", U"&lt;"},  //
                      Reference{"LongestPrefix", U"&notit; &notin;", U"\u00ACit; \u2209"},
                      Reference{"NameThenForeign", U"&copy\u732B;", U"\u00A9\u732B;"},
                      Reference{"NoName", U"& && &; &\u732B; &x;", U"& && &; &\u732B; &x;"},
                      Reference{"Decimal", U"&#65;&#66&#67x", U"ABCx"},
                      Reference{"Hexadecimal", U"&#x1F98A;&#X41&#x4g", U"\U0001F98AAg"},
                      Reference{"NotANumber", U"&#; &#x; &#xg; &#-1;", U"&#; &#x; &#xg; &#-1;"},
                      Reference{"C1", U"&#147;&#x85;&#129;", U"\u201C\u2026\u0081"},
                      Reference{"Null", U"&#0;", U"\uFFFD"},
                      Reference{"Surrogate", U"&#xD800;&#57343;", U"\uFFFD\uFFFD"},
                      Reference{"TooLarge", U"&#x110000;&#99999999999999999999;", U"\uFFFD\uFFFD"},
                      Reference{"WrapsNowhere", U"&#4294967361;&#x100000041;", U"\uFFFD\uFFFD"},
                      Reference{"Controls", U"a&#1;b&#11;c&#31;d&#127;e", U"abcde"},
                      Reference{"KeptControls", U"&#9;&#10;&#12;&#13;", U"\t\n\f\r"},
                      Reference{"Noncharacters", U"a&#xFDD0;b&#xFFFE;c&#x10FFFF;d", U"abcd"},
                      Reference{"LongName", U"&CounterClockwiseContourIntegral;", U"\u2233"},
                      Reference{"NameBeyond32", U"&" + std::u32string(40, U'a'),
                                U"&" + std::u32string(40, U'a')}),
    [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace wan
