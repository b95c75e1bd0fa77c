#include "server/http/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(FormTest, WhatIsNoMultipartBody) {
  const std::string type = "multipart/form-data; boundary=x";
  const std::string part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n";
  EXPECT_EQ(ErrorOf(type, part + "--x--"), "OK");
  EXPECT_EQ(ErrorOf(type, "--x--"), "OK");
  for (const std::string& body :
       {std::string(), part, part + "--x", std::string("--y--"), std::string("--xx\r\n")}) {
    EXPECT_THAT(ErrorOf(type, body), HasSubstr("is not multipart/form-data")) << body;
  }
  EXPECT_THAT(ErrorOf("multipart/form-data", part + "--x--"), HasSubstr("needs a boundary"));
  EXPECT_THAT(ErrorOf("multipart/form-data; boundary=" + std::string(71, 'x'), part),
              HasSubstr("needs a boundary"));
  EXPECT_THAT(ErrorOf(type, part + part + "--x--"), HasSubstr("a is given twice"));
  EXPECT_THAT(ErrorOf(type, "--x\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x--"),
              HasSubstr("has no name"));
  EXPECT_THAT(
      ErrorOf(type, "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--x--"),
      HasSubstr("a is not a text in UTF-8"));
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
