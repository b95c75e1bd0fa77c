#include "engine/text/mark_order.h"

#include <gtest/gtest.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>

#include "engine/text/cleaning.h"
#include "engine/text/utf8.h"

namespace wan {
namespace {

icu::UnicodeString ToUtf16(std::u32string_view text) {
  return icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(text.data()),
                                       static_cast<int32_t>(text.size()));
}

icu::UnicodeString Nfc(std::u32string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  icu::UnicodeString normal =
      icu::Normalizer2::getNFCInstance(error)->normalize(ToUtf16(text), error);
  EXPECT_TRUE(U_SUCCESS(error));
  return normal;
}

std::u32string Repeat(std::u32string_view unit, size_t times) {
  std::u32string text;
  for (size_t i = 0; i < times; ++i) text += unit;
  return text;
}

// How many marks ICU moves to put those that are out of order in their places: each passes all of a
// higher class before it, back to the latest character of class 0.
int64_t MovesToOrder(std::u32string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const nfc = icu::Normalizer2::getNFCInstance(error);
  int64_t moves = 0;
  int64_t waiting[256] = {};  // marks of each class since then
  for (const char32_t c : text) {
    icu::UnicodeString parts;
    if (!nfc->getDecomposition(static_cast<UChar32>(c), parts))
      parts.setTo(static_cast<UChar32>(c));
    for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
      const uint8_t combining_class = u_getCombiningClass(parts.char32At(i));
      if (combining_class == 0) {
        std::fill(std::begin(waiting), std::end(waiting), 0);
        continue;
      }
      for (int higher = combining_class + 1; higher < 256; ++higher) moves += waiting[higher];
      ++waiting[combining_class];
    }
  }
  return moves;
}

TEST(OrderMarks, LeavesFewMarksAlone) {
  for (const std::u32string& text :
       {std::u32string(), std::u32string(U"a cafe\u0301 \u0323\u0301\u0323 \u4E2D"),
        U"e" + Repeat(U"\u0301\u0323", 16)}) {
    EXPECT_EQ(OrderMarks(text), text);
  }
}

TEST(OrderMarks, SortsManyByClassAndKeepsTheOrderOfEach) {
  EXPECT_EQ(OrderMarks(U"e" + Repeat(U"\u0301\u0323\u0300", 20) + U"x\u0301\u0323"),
            U"e" + Repeat(U"\u0323", 20) + Repeat(U"\u0301\u0300", 20) + U"x\u0301\u0323");
}

// Marks that stand for two others do not end a run.
TEST(OrderMarks, DecomposesMarks) {
  EXPECT_EQ(OrderMarks(Repeat(U"\u0F73", 20)), Repeat(U"\u0F71", 20) + Repeat(U"\u0F72", 20));
}

TEST(OrderMarks, KeepsTheNormalForm) {
  // Letters, letters with marks, marks of many classes and of two parts, letters that join those
  // before them, and what joins nothing.
  constexpr char32_t kCharacters[] = {
      'a',    'e',    U'\u00E9', U'\u1EAD', U'\u0301', U'\u0300', U'\u0323', U'\u0327', U'\u0334',
      0x0344, 0x0F71, 0x0F73,    0x0F81,    0x05B0,    0x05BF,    0x3099,    0x094D,    0x1D165,
      0x1161, 0x1100, 0x09BE,    0x09C7,    0x034F,    0x0345,    0x20D0,    0x1D16D,   0x0340};
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::u32string text;
    // Few kinds in a text, so that runs become long.
    const size_t kinds = 1 + random() % 6;
    char32_t chosen[6];
    for (char32_t& c : chosen) c = kCharacters[random() % std::size(kCharacters)];
    for (size_t size = random() % 300; text.size() < size;) text += chosen[random() % kinds];
    EXPECT_EQ(Nfc(OrderMarks(text)), Nfc(text)) << EncodeUtf8(text);
  }
}

TEST(OrderMarks, LeavesFewMovesToIcu) {
  for (const std::u32string_view unit :
       {U"\u0301\u0323", U"\u0F73", U"\u0344\u0323", U"\u0323\u0301\u0334\u05B0",
        U"\U0001D165\u0323", U"\u00E9\u0323\u0301", U"\u0F72\u0F71"}) {
    const std::u32string text = Repeat(unit, 20'000);
    EXPECT_LE(MovesToOrder(OrderMarks(text)), static_cast<int64_t>(32 * text.size()))
        << EncodeUtf8(unit);
  }
  EXPECT_GT(MovesToOrder(Repeat(U"\u0301\u0323", 20'000)), int64_t{100'000'000});
}

// Before marks were ordered here, this took minutes.
TEST(CleanPrompt, TakesLinearTimeForMarks) {
  constexpr size_t kTimes = 250'000;
  EXPECT_EQ(CleanPrompt(EncodeUtf8(U"x" + Repeat(U"\u0301\u0323", kTimes))).value(),
            EncodeUtf8(U"x" + Repeat(U"\u0323", kTimes) + Repeat(U"\u0301", kTimes)));
}

}  // namespace
}  // namespace wan
