#include "engine/formats/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(JsonTextTest, ParsesOrSaysWhere) {
  EXPECT_EQ(ParseJson(R"({"a":[1,{"a":null}]})", "f")->size(), 1u);
  EXPECT_EQ(ParseJson("[1,,2]", "f").status().message(), "f: not valid JSON at byte 4");
  EXPECT_EQ(ParseJson("", "f").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(ParseJson("{} x", "f").ok());
  EXPECT_FALSE(ParseJson(R"("\ud800")", "f").ok());
  EXPECT_FALSE(ParseJson("1e999", "f").ok());
}

TEST(JsonTextTest, RefusesKeysThatOccurTwiceInOneObject) {
  EXPECT_EQ(ParseJson(R"({"a":1,"b":{"a":2}, "a":3})", "f").status().message(),
            "f: key \"a\" occurs twice");
  EXPECT_TRUE(ParseJson(R"([{"a":1},{"a":1}])", "f").ok());
}

TEST(JsonTextTest, RefusesDeepNesting) {
  EXPECT_TRUE(ParseJson(std::string(64, '[') + std::string(64, ']'), "f").ok());
  EXPECT_THAT(
      std::string(ParseJson(std::string(65, '[') + std::string(65, ']'), "f").status().message()),
      HasSubstr("deeper than 64"));
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '['), "f").ok());
}

TEST(JsonTextTest, ReadsObjectsFromFiles) {
  const testing::TempFolder folder;
  const std::string path = (folder / "config.json").string();
  EXPECT_EQ(ReadJsonObject(path).status().code(), absl::StatusCode::kNotFound);
  testing::WriteFile(path, "[]");
  EXPECT_EQ(ReadJsonObject(path).status().message(), path + ": not a JSON object");
  testing::WriteFile(path, "{}");
  EXPECT_TRUE(ReadJsonObject(path).ok());
}

TEST(JsonFieldsTest, ReadsTypedFields) {
  const nlohmann::json object = {{"i", 5},        {"n", 2.5},       {"t", "x"},
                                 {"b", true},     {"is", {1, 2}},   {"ns", {1, 2.5}},
                                 {"bs", {false}}, {"null", nullptr}};
  const std::string file = "f";
  JsonFields fields(object, file);
  EXPECT_EQ(fields.Integer("i", 5, 5), 5);
  EXPECT_EQ(fields.Number("i"), 5);
  EXPECT_EQ(fields.Number("n"), 2.5);
  EXPECT_EQ(fields.Text("t"), "x");
  EXPECT_TRUE(fields.Bool("b"));
  EXPECT_THAT(fields.Integers("is", 1, 2), ElementsAre(1, 2));
  EXPECT_THAT(fields.Numbers("ns"), ElementsAre(1, 2.5));
  EXPECT_THAT(fields.Bools("bs"), ElementsAre(false));
  EXPECT_TRUE(fields.Has("i"));
  EXPECT_FALSE(fields.Has("null"));
  EXPECT_FALSE(fields.Has("none"));
  EXPECT_THAT(fields.problems(), IsEmpty());
}

TEST(JsonFieldsTest, KeepsEveryProblem) {
  const nlohmann::json object = {{"i", 5}, {"huge", ~uint64_t{0}}, {"t", "x\n"}, {"is", {1, "2"}}};
  const std::string file = "f";
  JsonFields fields(object, file);
  EXPECT_EQ(fields.Integer("i", 6, 9), 0);
  EXPECT_EQ(fields.Integer("huge", -5, INT64_MAX), 0);
  EXPECT_EQ(fields.Integer("t", 0, 1), 0);
  EXPECT_EQ(fields.Number("t"), 0);
  EXPECT_FALSE(fields.Bool("i"));
  EXPECT_EQ(fields.Text("none"), "");
  EXPECT_THAT(fields.Integers("is", 0, 9), IsEmpty());
  EXPECT_THAT(fields.Integers("i", 0, 9), IsEmpty());
  ASSERT_THAT(fields.problems(), SizeIs(8));
  EXPECT_EQ(fields.problems()[0].message(), "f: \"i\" is 5, expected an integer from 6 to 9");
  EXPECT_EQ(fields.problems()[3].message(), "f: \"t\" is \\\"x\\\\n\\\", expected a number");
  EXPECT_EQ(fields.problems()[5].message(), "f: \"none\" is missing");
}

}  // namespace
}  // namespace wan
