#include "engine/api/utf8.h"

#include "gtest/gtest.h"

namespace wan {
namespace {

TEST(Utf8Test, TellsTextFromBytes) {
  for (const char* text : {"", "plain", "caf\xc3\xa9", "\xf0\x9f\x9a\xb2", "\xef\xbf\xbd"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(ToUtf8(text), text);
  }
  EXPECT_TRUE(IsUtf8(std::string_view("a\0b", 3)));
  // Latin-1, a cut character, a lone continuation, an overlong form, a surrogate, past U+10FFFF.
  for (const char* text :
       {"caf\xe9", "caf\xc3", "\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
    EXPECT_TRUE(IsUtf8(ToUtf8(text))) << text;
  }
}

TEST(Utf8Test, ReplacesOnlyWhatIsWrong) {
  EXPECT_EQ(ToUtf8("caf\xe9 \xc3\xa9"), "caf\xef\xbf\xbd \xc3\xa9");
  EXPECT_EQ(ToUtf8("\xe9\xe9"), "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace wan
