#include "engine/checkpoint/scaled_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/weight_tables.h"
#include "engine/formats/safetensors.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SafetensorsBytes;
using testing::TempFolder;
using testing::WriteFile;

// A matrix "a.weight" of [2, 3] in 8 bits, and further tensors.
class ScaledWeightsTest : public ::testing::Test {
 protected:
  // Returns the values of the matrix as bf16 bits. `more` are further entries of the header.
  std::vector<uint16_t> Values(const std::string& dtype, const std::string& codes,
                               const std::string& more = "", const std::string& data = "",
                               const std::string& shape = "[2,3]") {
    const std::string path = (folder_ / "a.safetensors").string();
    WriteFile(path, SafetensorsBytes(R"({"a.weight":{"dtype":")" + dtype + R"(","shape":)" + shape +
                                         R"(,"data_offsets":[0,)" + std::to_string(codes.size()) +
                                         "]}" + more + "}",
                                     codes + data));
    const auto file = ReadSafetensors(path);
    EXPECT_TRUE(file.ok()) << file.status();
    TensorFiles files;
    files.files.push_back(*file);
    problems_.clear();
    const auto source = MakeFileWeights(files, {{"a.weight", "a.weight", {2, 3}}},
                                        Naming::kUpstream, path, problems_);
    const TensorInfo* const info = source->Find("a.weight");
    if (info == nullptr || !problems_.empty()) return {};
    stored_as_ = info->stored_as;
    EXPECT_EQ(info->dtype, DType::kBFloat16);
    EXPECT_EQ(info->bytes, 12u);
    const TensorBytes bytes = source->Read(*info).value();
    EXPECT_EQ(bytes.size(), 12u);
    std::vector<uint16_t> values(6);
    EXPECT_TRUE(bytes.Read(0, std::as_writable_bytes(std::span(values))).ok());
    // Any part of the bytes can be read alone.
    for (size_t begin = 0; begin < 12; ++begin) {
      std::vector<std::byte> rest(12 - begin);
      EXPECT_TRUE(bytes.Part(begin, rest.size()).Read(0, rest).ok());
      EXPECT_EQ(
          std::memcmp(rest.data(), std::as_bytes(std::span(values)).data() + begin, rest.size()),
          0);
    }
    return values;
  }

  std::string Problem() const {
    return problems_.empty() ? "" : std::string(problems_.front().message());
  }

  TempFolder folder_;
  std::vector<absl::Status> problems_;
  std::string stored_as_;
};

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// 1, 2, -1, 0.5, 0 and 448 in e4m3.
constexpr char kCodes[] = "\x38\x40\xb8\x30\x00\x7e";
const std::string& Codes() {
  static const std::string codes(kCodes, 6);
  return codes;
}

TEST_F(ScaledWeightsTest, CodesWithoutScalesAreTheValues) {
  EXPECT_THAT(Values("F8_E4M3", Codes()), ElementsAre(0x3f80, 0x4000, 0xbf80, 0x3f00, 0, 0x43e0));
  EXPECT_EQ(stored_as_, "F8_E4M3");
  EXPECT_THAT(Values("F8_E5M2", std::string("\x3c\x40\xbc\x38\x00\x7b", 6)),
              ElementsAre(0x3f80, 0x4000, 0xbf80, 0x3f00, 0, 0x4760));
}

TEST_F(ScaledWeightsTest, OneScaleIsForTheWholeMatrix) {
  for (const std::string name : {"a.scale_weight", "a.weight_scale"}) {
    for (const std::string shape : {"[]", "[1]", "[1,1]"}) {
      EXPECT_THAT(Values("F8_E4M3", Codes(),
                         ",\"" + name + R"(":{"dtype":"F32","shape":)" + shape +
                             R"(,"data_offsets":[6,10]})",
                         Floats({2})),
                  ElementsAre(0x4000, 0x4080, 0xc000, 0x3f80, 0, 0x4460))
          << Problem();
      EXPECT_EQ(stored_as_, "F8_E4M3 scaled");
    }
  }
}

TEST_F(ScaledWeightsTest, EachRowMayHaveAScale) {
  EXPECT_THAT(Values("I8", std::string("\x01\x02\xff\x01\x00\x7f", 6),
                     R"(,"a.weight_scale":{"dtype":"F32","shape":[2,1],"data_offsets":[6,14]})",
                     Floats({1, 4})),
              ElementsAre(0x3f80, 0x4000, 0xbf80, 0x4080, 0, 0x43fe))
      << Problem();
}

TEST_F(ScaledWeightsTest, MarksAndScalesOfActivationsAreIgnored) {
  EXPECT_THAT(Values("F8_E4M3", Codes(),
                     R"(,"a.scale_weight":{"dtype":"F32","shape":[],"data_offsets":[6,10]},
                 "a.scale_input":{"dtype":"F32","shape":[],"data_offsets":[10,14]},
                 "scaled_fp8":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[14,16]},
                 "spiece_model":{"dtype":"U8","shape":[1],"data_offsets":[16,17]})",
                     Floats({1, 1}) + "abc"),
              ElementsAre(0x3f80, 0x4000, 0xbf80, 0x3f00, 0, 0x43e0));
  EXPECT_THAT(problems_, IsEmpty());
}

// Otherwise every job of the model would end with NOT_FINITE.
TEST_F(ScaledWeightsTest, ScalesThatAreNotFiniteAreRefused) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    Values("F8_E4M3", Codes(),
           R"(,"a.weight_scale":{"dtype":"F32","shape":[2,1],"data_offsets":[6,14]})",
           Floats({1, bad}));
    EXPECT_THAT(Problem(), HasSubstr("tensor a.weight_scale has NaN or infinity at element 1; must "
                                     "have finite scales"));
  }
  Values("I8", Codes(), R"(,"a.weight_scale":{"dtype":"BF16","shape":[],"data_offsets":[6,8]})",
         std::string("\xc0\x7f", 2));
  EXPECT_THAT(Problem(), HasSubstr("at element 0"));
}

TEST_F(ScaledWeightsTest, MissingOrWrongScalesAreRefused) {
  Values("I8", Codes());
  EXPECT_THAT(Problem(), HasSubstr("tensor a.weight has dtype I8 and no scales; must have "
                                   "weight_scale or scale_weight beside it"));
  Values("F8_E4M3", Codes(),
         R"(,"scaled_fp8":{"dtype":"F8_E4M3","shape":[0],"data_offsets":[6,6]})");
  EXPECT_THAT(Problem(), HasSubstr("no scales, although the file's tensor scaled_fp8 says"));
  Values("F8_E4M3", Codes(),
         R"(,"a.weight_scale":{"dtype":"F32","shape":[3],"data_offsets":[6,18]})",
         Floats({1, 1, 1}));
  EXPECT_THAT(Problem(), HasSubstr("tensor a.weight_scale has shape [3]; must have one scale"));
  Values("F8_E4M3", Codes(),
         R"(,"a.weight_scale":{"dtype":"U8","shape":[2,1],"data_offsets":[6,8]})", "ab");
  EXPECT_THAT(Problem(), HasSubstr("has dtype U8; must be F32, F16 or BF16"));
  // A file may say that a single value has no dimensions.
  Values("F8_E4M3", "8", R"(,"a.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[1,5]})",
         Floats({1}), "[]");
  EXPECT_THAT(Problem(), HasSubstr("tensor a.weight has shape []"));
  // A scale that was lost, as other matrices show, would be read as 1.
  Values("F8_E4M3", Codes(),
         R"(,"b.weight":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[6,7]})"
         R"(,"b.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[7,11]})",
         "8" + Floats({1}));
  EXPECT_THAT(Problem(),
              HasSubstr("tensor a.weight has dtype F8_E4M3 and no scales, although other matrices "
                        "have them; must have weight_scale or scale_weight beside it"));
  Values("U8", Codes());
  EXPECT_THAT(Problem(), HasSubstr("has dtype U8, expected F32, F16, BF16, F8_E4M3"));
}

}  // namespace
}  // namespace wan
