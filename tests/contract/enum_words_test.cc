#include "proto/enum_words.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan {
namespace {

using testing::ElementsAre;

TEST(EnumWordsTest, AValueHasItsWord) {
  EXPECT_EQ(WordOf(wan::v1::SOLVER_DPMPP), "dpm++");
  EXPECT_EQ(WordOf(wan::v1::OUTPUT_KIND_LOSSLESS_MKV), "mkv");
  EXPECT_EQ(ValueOf<wan::v1::Solver>("dpm++"), wan::v1::SOLVER_DPMPP);
  EXPECT_EQ(ValueOf<wan::v1::Solver>("DPM++"), wan::v1::SOLVER_DPMPP);
}

TEST(EnumWordsTest, EachValueButTheUnsetOneHasAWordOfItsOwn) {
  for (const google::protobuf::EnumDescriptor* type :
       {v1::Solver_descriptor(), v1::Quality_descriptor(), v1::VaePrecision_descriptor(),
        v1::Decoder_descriptor(), v1::OutputKind_descriptor(), v1::JobState_descriptor(),
        v1::ModelState_descriptor()}) {
    const std::vector<std::string> words = WordsOf(*type);
    EXPECT_EQ(words.size(), static_cast<size_t>(type->value_count()) - 1) << type->full_name();
    EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size());
    EXPECT_EQ(WordOf(*type, 0), "") << type->full_name();
  }
}

TEST(EnumWordsTest, UnspecifiedAndUnknownValuesHaveNone) {
  EXPECT_EQ(WordOf(wan::v1::SOLVER_UNSPECIFIED), "");
  EXPECT_EQ(WordOf(static_cast<wan::v1::Solver>(77)), "");
  EXPECT_EQ(ValueOf<wan::v1::Solver>(""), std::nullopt);
  EXPECT_EQ(ValueOf<wan::v1::Solver>("heun"), std::nullopt);
}

TEST(EnumWordsTest, ListsAreInTheOrderOfTheContract) {
  EXPECT_THAT(WordsOf<wan::v1::JobState>(),
              ElementsAre("queued", "running", "completed", "failed", "cancelled"));
  EXPECT_EQ(ValuesOf<wan::v1::OutputKind>(),
            "OUTPUT_KIND_MP4, OUTPUT_KIND_LOSSLESS_MKV or OUTPUT_KIND_LATENTS");
}

}  // namespace
}  // namespace wan
