#include "proto/enum_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "wan/v1/generation.pb.h"

namespace wan {
namespace {

using testing::ElementsAre;

TEST(EnumWordsTest, AValueHasItsWord) {
  EXPECT_EQ(WordOf(wan::v1::SOLVER_DPMPP), "dpm++");
  EXPECT_EQ(WordOf(wan::v1::OUTPUT_KIND_LOSSLESS_MKV), "mkv");
  EXPECT_EQ(ValueOf<wan::v1::Solver>("dpm++"), wan::v1::SOLVER_DPMPP);
  EXPECT_EQ(ValueOf<wan::v1::Solver>("DPM++"), wan::v1::SOLVER_DPMPP);
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
