// The latents in the files that callers send.
#include "engine/formats/latents_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using wan::testing::SafetensorsBytes;

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  size_t begin, size_t end) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                      ",\"data_offsets\":[", begin, ",", end, "]}");
}

std::string OneTensor(const std::string& dtype, const std::string& shape, const std::string& data,
                      const std::string& name = "latents") {
  return SafetensorsBytes("{" + Entry(name, dtype, shape, 0, data.size()) + "}", data);
}

std::string Zeros(size_t bytes) { return std::string(bytes, '\0'); }

std::string ProblemOf(const std::string& file) {
  const auto found = FindLatents(file);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument) << found.status();
  return std::string(found.status().message());
}

TEST(LatentsFileTest, TheTensorMayHaveEachFloatingType) {
  for (const auto& [dtype, bytes] :
       {std::pair("F32", size_t{4}), std::pair("F16", size_t{2}), std::pair("BF16", size_t{2})}) {
    const std::string file = OneTensor(dtype, "[2,1,1,2]", Zeros(4 * bytes));
    const auto found = FindLatents(file);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(found->shape, ElementsAre(2, 1, 1, 2));
    EXPECT_EQ(DTypeName(found->dtype), dtype);
  }
}

TEST(LatentsFileTest, ABatchOfOneIsOneVideosLatents) {
  EXPECT_THAT(FindLatents(OneTensor("F16", "[1,2,1,1,2]", Zeros(8)))->shape,
              ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(FindLatents(OneTensor("F16", "[2,2,1,1,2]", Zeros(16)))->shape,
              ElementsAre(2, 2, 1, 1, 2));
}

TEST(LatentsFileTest, TheOnlyTensorMayHaveAnyNameAndOthersStandBesideTheOneCalledLatents) {
  EXPECT_TRUE(FindLatents(OneTensor("F32", "[1]", Zeros(4), "samples")).ok());
  const std::string two = SafetensorsBytes(
      "{" + Entry("a", "F32", "[1]", 0, 4) + "," + Entry("latents", "F32", "[2]", 4, 12) + "}",
      Zeros(12));
  EXPECT_THAT(FindLatents(two)->shape, ElementsAre(2));
  EXPECT_EQ(
      ProblemOf(SafetensorsBytes(
          "{" + Entry("a", "F32", "[1]", 0, 4) + "," + Entry("b", "F32", "[1]", 4, 8) + "}",
          Zeros(8))),
      "has 2 tensors, none of them called latents; must have one tensor, or one of that name");
}

TEST(LatentsFileTest, OtherTypesAreRefused) {
  EXPECT_EQ(ProblemOf(OneTensor("I64", "[1]", Zeros(8))),
            "has the dtype I64; must be F32, F16 or BF16");
}

TEST(LatentsFileTest, NanAndInfinityAreRefused) {
  EXPECT_EQ(ProblemOf(OneTensor("F32", "[2]", std::string("\0\0\0\0\0\0\xc0\x7f", 8))),
            "has NaN or infinity at element 1; must have finite values");
  EXPECT_EQ(ProblemOf(OneTensor("F16", "[2]", std::string("\0\0\0\x7c", 4))),
            "has NaN or infinity at element 1; must have finite values");
  EXPECT_EQ(ProblemOf(OneTensor("BF16", "[1]", std::string("\x80\xff", 2))),
            "has NaN or infinity at element 0; must have finite values");
}

// Each device group plans a request; the file is the same.
TEST(LatentsFileTest, AFileIsReadOnceWhileItExists) {
  const std::string good = OneTensor("F32", "[1]", Zeros(4));
  std::string bad = good;
  bad.replace(bad.size() - 2, 2, "\xc0\x7f");
  auto file = std::make_shared<std::string>(good);
  EXPECT_TRUE(FindLatentsOnce(file).ok());
  *file = bad;
  EXPECT_TRUE(FindLatentsOnce(file).ok()) << "the values are not read again";
  *file = "abc";
  EXPECT_FALSE(FindLatentsOnce(file).ok()) << "the header is";
  file.reset();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(FindLatentsOnce(std::make_shared<const std::string>(bad)).ok());
  }
}

TEST(LatentsFileTest, AnotherFileIsNoFileOfLatents) {
  EXPECT_EQ(ProblemOf("abc"),
            "is not a file of latents: is a text that begins with \"abc\"; must be a safetensors "
            "file, for example the latents of an earlier job");
  EXPECT_FALSE(FindLatents("").ok());
  const std::string whole = OneTensor("F32", "[2]", Zeros(8));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(FindLatents(whole.substr(0, bytes)).ok()) << bytes;
  }
}

TEST(LatentsFileTest, AHugeHeaderIsNotParsed) {
  const std::string name(size_t{2} << 20, 'x');
  EXPECT_THAT(ProblemOf(OneTensor("F32", "[1]", Zeros(4), name)),
              ::testing::HasSubstr("claims a header of more than the 1048576 bytes"));
}

}  // namespace
}  // namespace wan
