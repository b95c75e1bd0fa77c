#include "server/http/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string ErrorOf(std::string_view type, const std::string& body) {
  const auto form = ParseForm(type, body);
  if (form.ok()) return "OK";
  std::string text(form.status().message());
  for (const FieldViolation& violation : FieldViolationsOf(form.status())) {
    absl::StrAppend(&text, " | ", violation.field, " ", violation.description);
  }
  return text;
}

TEST(FormTest, JsonKeepsWhatIsNotNull) {
  const auto form = ParseForm("application/json; charset=utf-8",
                              R"({"prompt": "a cat", "seed": 7, "size": null})");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_THAT(form->fields, ElementsAre(Pair("prompt", "a cat"), Pair("seed", 7)));
}

TEST(FormTest, WhatIsNoJsonObject) {
  EXPECT_THAT(ErrorOf("application/json", "{"), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf("application/json", ""), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf("application/json", "{\"prompt\": \"\xff\"}"), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf("application/json", "[1]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(ErrorOf("text/plain", "{}"), HasSubstr("Content-Type must be application/json"));
  EXPECT_THAT(ErrorOf("", "{}"), HasSubstr("Content-Type must be application/json"));
}

TEST(FormTest, JsonMayHaveItsValuesAndNoMore) {
  const auto list = [](int values) {
    std::string text = "{\"a\":[";  // the object, its key and the list are values, too
    for (int i = 0; i < values; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "0");
    return text + "]}";
  };
  EXPECT_EQ(ErrorOf("application/json", list(kMaxFormValues - 3)), "OK");
  EXPECT_THAT(ErrorOf("application/json", list(kMaxFormValues - 2)), HasSubstr("more than 1000"));
  // What nests without end takes no stack and no memory.
  EXPECT_THAT(ErrorOf("application/json", "{\"a\":" + std::string(1'000'000, '[')),
              HasSubstr("more than 1000"));
}

TEST(FormTest, MultipartHasTextsAndFiles) {
  const auto form =
      ParseForm("multipart/form-data; boundary=\"x y\"",
                "--x y\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n"
                "--x y\r\ncontent-disposition: form-data; name=\"input_reference\"; "
                "filename=\"a \\\"b\\\"; name=\\\"c\"\r\nContent-Type: image/png\r\n\r\n"
                "PNG\r\n\xff\r\n--x\r\n"
                "--x y--\r\n");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_THAT(form->fields, ElementsAre(Pair("prompt", "a cat")));
  EXPECT_THAT(form->files, ElementsAre(Pair("input_reference", "PNG\r\n\xff\r\n--x")));
}

// A part of a body with the boundary x.
std::string Part(const std::string& header, const std::string& content) {
  return absl::StrCat("--x\r\nContent-Disposition: form-data; ", header, "\r\n\r\n", content,
                      "\r\n");
}

TEST(FormTest, ATextOfAFormIsNoLargerThanAPrompt) {
  const auto error_of = [](const std::string& text) {
    return ErrorOf("multipart/form-data; boundary=x", Part("name=\"prompt\"", text) + "--x--");
  };
  EXPECT_EQ(error_of(std::string(kMaxPartTextBytes, 'a')), "OK");
  EXPECT_THAT(error_of(std::string(kMaxPartTextBytes + 1, '\1')),
              HasSubstr("prompt has 65537 bytes; must have at most 65536"));
  // A picture as text, which form fields read.
  EXPECT_EQ(error_of("data:image/png;base64," + std::string(kMaxPartTextBytes, 'A')), "OK");
}

TEST(FormTest, AFileIsKnownByItsNameItsTypeOrItsBytes) {
  for (const auto& [header, content] :
       {std::pair{"name=\"a\"; filename=\"\"", ""},
        std::pair{"name=\"a\"; filename*=UTF-8''b.png", "text"},
        std::pair{"name=\"a\"\r\nContent-Type: image/png", "text"},
        std::pair{"name=\"a\"\r\nCONTENT-TYPE:APPLICATION/OCTET-STREAM", ""},
        std::pair{"name=\"a\"", "\x89PNG"}}) {
    const auto form = ParseForm("multipart/form-data; boundary=x", Part(header, content) + "--x--");
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_THAT(form->files, ElementsAre(Pair("a", content))) << header;
    EXPECT_TRUE(form->fields.empty()) << header;
  }
  for (const char* const type : {"text/plain; charset=utf-8", "application/json"}) {
    const auto form =
        ParseForm("multipart/form-data; boundary=x",
                  Part(absl::StrCat("name=\"a\"\r\nContent-Type: ", type), "[]") + "--x--");
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_THAT(form->fields, ElementsAre(Pair("a", "[]"))) << type;
  }
}

// As OpenAI's clients write what is inside of lists and objects.
TEST(FormTest, BracketsInANameMakeListsAndObjects) {
  const auto parse = [](const std::vector<std::pair<std::string, std::string>>& parts) {
    std::string body;
    for (const auto& [name, content] : parts) body += Part("name=\"" + name + "\"", content);
    return ParseForm("multipart/form-data; boundary=x", body + "--x--");
  };
  const auto form = parse({{"loras[][name]", "ink"},
                           {"loras[][name]", "oil"},
                           {"loras[][scale]", "2"},
                           {"loras[][scale]", "3"},
                           {"loras[][name]", "tar"},
                           {"image[url]", "data:"},
                           {"tags[]", "a"},
                           {"tags[]", "b"},
                           {"odd[", "1"},
                           {"odd]", "2"},
                           {"[odd]", "3"},
                           {"odd[a]b", "4"},
                           {"deep[a][b][c][d][e]", "5"}});
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_TRUE(form->texts_only);
  EXPECT_THAT(form->fields, ElementsAre(Pair("[odd]", "3"), Pair("deep[a][b][c][d][e]", "5"),
                                        Pair("image", nlohmann::json({{"url", "data:"}})),
                                        Pair("loras", nlohmann::json::parse(R"([{"name": "ink"},
                       {"name": "oil", "scale": "2"}, {"name": "tar", "scale": "3"}])")),
                                        Pair("odd[", "1"), Pair("odd[a]b", "4"), Pair("odd]", "2"),
                                        Pair("tags", nlohmann::json({"a", "b"}))));
  using Parts = std::vector<std::pair<std::string, std::string>>;
  for (const Parts& twice :
       {Parts{{"a", "1"}, {"a[]", "2"}}, Parts{{"a[b]", "1"}, {"a[b]", "2"}},
        Parts{{"a[]", "1"}, {"a[b]", "2"}}, Parts{{"a[b]", "1"}, {"a", "2"}},
        Parts{{"a[b]", "1"}, {"a", "\xff"}}, Parts{{"a", "\xff"}, {"a[]", "1"}}}) {
    const auto wrong = parse(twice);
    ASSERT_FALSE(wrong.ok());
    EXPECT_THAT(FieldViolationsOf(wrong.status()).at(0).description, HasSubstr("is given twice"));
  }
}

TEST(FormTest, WhatStandsBeforeTheFirstPartDoesNotCount) {
  for (const char* const before : {"\r\n", "A form.\r\n", "--y\r\n"}) {
    const auto form =
        ParseForm("multipart/form-data; boundary=x", before + Part("name=\"a\"", "b") + "--x--");
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_THAT(form->fields, ElementsAre(Pair("a", "b")));
  }
}

TEST(FormTest, WhatIsNoMultipartBody) {
  const std::string type = "multipart/form-data; boundary=x";
  const std::string part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n";
  EXPECT_EQ(ErrorOf(type, part + "--x--"), "OK");
  EXPECT_EQ(ErrorOf(type, "--x--"), "OK");
  for (const std::string& body :
       {std::string(), part, part + "--x", std::string("--y--"), std::string("--xx\r\n")}) {
    EXPECT_THAT(ErrorOf(type, body), HasSubstr("malformed multipart/form-data")) << body;
  }
  EXPECT_THAT(ErrorOf("multipart/form-data", part + "--x--"), HasSubstr("needs a boundary"));
  EXPECT_THAT(ErrorOf("multipart/form-data; boundary=" + std::string(71, 'x'), part),
              HasSubstr("needs a boundary"));
  EXPECT_THAT(ErrorOf(type, part + part + "--x--"), HasSubstr("a is given twice"));
  EXPECT_THAT(ErrorOf(type, "--x\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x--"),
              HasSubstr("has no name"));
  EXPECT_THAT(
      ErrorOf(type, "--x\r\nX: " + std::string(kMaxPartHeaderBytes, 'y') + "\r\n\r\nb\r\n--x--"),
      HasSubstr("no end of its header"));
}

TEST(FormTest, MultipartMayHaveItsPartsAndNoMore) {
  const auto body = [](int parts) {
    std::string text;
    for (int i = 0; i < parts; ++i) {
      absl::StrAppend(&text, "--x\r\nContent-Disposition: form-data; name=\"", i,
                      "\"\r\n\r\nb\r\n");
    }
    return text + "--x--";
  };
  const std::string type = "multipart/form-data; boundary=x";
  EXPECT_EQ(ErrorOf(type, body(kMaxFormValues)), "OK");
  EXPECT_THAT(ErrorOf(type, body(kMaxFormValues + 1)), HasSubstr("more than 1000 parts"));
}

TEST(FormTest, Query) {
  const auto query = ParseQuery("after=video_1&order=a%73c&x=a+b%2b&empty=&none");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_THAT(*query, ElementsAre(Pair("after", "video_1"), Pair("empty", ""), Pair("none", ""),
                                  Pair("order", "asc"), Pair("x", "a b+")));
  EXPECT_TRUE(ParseQuery("")->empty());
  for (const char* const wrong : {"a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2"}) {
    EXPECT_FALSE(ParseQuery(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace wan::server
