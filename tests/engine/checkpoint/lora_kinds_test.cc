// LoHas, LoKrs and DoRAs: their factors, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/lora_file.h"
#include "tests/engine/checkpoint/lora_file_fixture.h"

namespace wan {
namespace {

using ::testing::SizeIs;

TEST_F(LoraFileTest, LoHasLoKrsAndDorasHaveTheirFactors) {
  for (const char* const part : {"hada_w1", "hada_w2"}) {
    Add(absl::StrCat("blocks.0.self_attn.q.", part, "_a"), {8, 2});
    Add(absl::StrCat("blocks.0.self_attn.q.", part, "_b"), {2, 8});
  }
  Add("blocks.0.self_attn.q.alpha", {}, "F32", Scalar(1));
  Add("blocks.0.self_attn.k.lokr_w1", {2, 2});
  Add("blocks.0.self_attn.k.lokr_w2_a", {4, 2});
  Add("blocks.0.self_attn.k.lokr_w2_b", {2, 4});
  Add("blocks.0.self_attn.k.alpha", {}, "F32", Scalar(3));
  // Both sides are whole; ai-toolkit writes such numbers, in half precision even infinity.
  Add("blocks.0.self_attn.o.lokr_w1", {2, 2});
  Add("blocks.0.self_attn.o.lokr_w2", {4, 4});
  Add("blocks.0.self_attn.o.alpha", {}, "F32", Scalar(HUGE_VALF));
  AddPair("blocks.0.self_attn.v", 8, 2, 8);
  Add("blocks.0.self_attn.v.dora_scale", {1, 8});
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->terms, SizeIs(4));
  EXPECT_EQ(file->terms[0].target, "blocks.0.self_attn.k.weight");
  EXPECT_EQ(file->terms[0].factor, 1.5);
  EXPECT_EQ(file->terms[1].factor, 1) << "no rank to divide by";
  EXPECT_EQ(file->terms[2].form, LoraForm::kHadamard);
  EXPECT_EQ(file->terms[2].factor, 0.5);
  EXPECT_EQ(file->terms[3].magnitude, LoraMagnitude::kOfColumns);
}

struct BadAdapter {
  const char* what;
  std::vector<std::pair<const char*, std::vector<int64_t>>> tensors;
  absl::StatusCode code;
  const char* says;
};

TEST_F(LoraFileTest, AdaptersOfOtherKindsThatDoNotFitAreRefused) {
  const BadAdapter cases[] = {
      {"half of a product",
       {{"hada_w1_a", {8, 2}}, {"hada_w2_a", {8, 2}}, {"hada_w2_b", {2, 8}}},
       absl::StatusCode::kDataLoss,
       "hada_w1_a is half of a LoHa: its hada_w1_b is missing"},
      {"no second product",
       {{"hada_w1_a", {8, 2}}, {"hada_w1_b", {2, 8}}},
       absl::StatusCode::kDataLoss,
       "is a part of a LoHa: its hada_w2_b is missing"},
      {"two ranks",
       {{"hada_w1_a", {8, 2}}, {"hada_w1_b", {2, 8}}, {"hada_w2_a", {8, 3}}, {"hada_w2_b", {3, 8}}},
       absl::StatusCode::kDataLoss,
       "has rank 3, but "},
      {"a LoHa of another size",
       {{"hada_w1_a", {9, 2}}, {"hada_w1_b", {2, 8}}, {"hada_w2_a", {8, 2}}, {"hada_w2_b", {2, 8}}},
       absl::StatusCode::kInvalidArgument,
       "[9, 2], expected [8, rank]"},
      {"one side", {{"lokr_w1", {2, 2}}}, absl::StatusCode::kDataLoss, "its lokr_w2_b is missing"},
      {"a side given twice",
       {{"lokr_w1", {2, 2}}, {"lokr_w1_a", {2, 1}}, {"lokr_w1_b", {1, 2}}, {"lokr_w2", {4, 4}}},
       absl::StatusCode::kDataLoss,
       "is a factor of "},
      {"sides of another size",
       {{"lokr_w1", {2, 2}}, {"lokr_w2", {4, 5}}},
       absl::StatusCode::kInvalidArgument,
       "the product of [2, 2] and [4, 5], expected [8, 8]"},
      {"a side that is no matrix",
       {{"lokr_w1", {2}}, {"lokr_w2", {4, 4}}},
       absl::StatusCode::kDataLoss,
       "is not a matrix"},
      {"a side without rows",
       {{"lokr_w1", {0, 2}}, {"lokr_w2", {4, 4}}},
       absl::StatusCode::kDataLoss,
       "is not a matrix"},
      {"a side without columns",
       {{"lokr_w1", {4, 0}}, {"lokr_w2", {4, 0}}},
       absl::StatusCode::kDataLoss,
       "is not a matrix with at least one row and one column"},
      {"two kinds",
       {{"lora_A.weight", {2, 8}}, {"lora_B.weight", {8, 2}}, {"lokr_w1", {2, 2}}},
       absl::StatusCode::kDataLoss,
       "parts of two kinds of adapters"},
      {"lengths of another size",
       {{"lora_A.weight", {2, 8}}, {"lora_B.weight", {8, 2}}, {"dora_scale", {9}}},
       absl::StatusCode::kInvalidArgument,
       "[9], expected [8], [8, 1] or [1, 8]"},
      {"lengths alone", {{"dora_scale", {8}}}, absl::StatusCode::kDataLoss, "stands alone"},
  };
  for (const BadAdapter& bad : cases) {
    SCOPED_TRACE(bad.what);
    header_ = nlohmann::json::object();
    data_.clear();
    for (const auto& [part, shape] : bad.tensors) {
      Add(absl::StrCat("blocks.0.self_attn.q.", part), shape);
    }
    ExpectRefused(bad.code, {bad.says});
  }
}

TEST_F(LoraFileTest, ValuesOfOtherKindsMustBeFinite) {
  AddPair("blocks.0.self_attn.q", 8, 2, 8);
  Add("blocks.0.self_attn.q.dora_scale", {8, 1}, "F32", std::string(28, '\0') + Scalar(HUGE_VALF));
  ExpectRefused(absl::StatusCode::kDataLoss, {"q.dora_scale has a value that is NaN", "element 7"});
}

}  // namespace
}  // namespace wan
