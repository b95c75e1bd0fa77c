#include "engine/checkpoint/weight_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two specs over eight bytes of storage, stored under diffusers' or upstream's names.
class WeightTablesTest : public ::testing::Test {
 protected:
  WeightTablesTest() : storage_(std::make_shared<std::vector<std::byte>>(64)) {
    for (size_t i = 0; i < storage_->size(); ++i) (*storage_)[i] = static_cast<std::byte>(i);
  }

  // 4 bytes at `offset` as one number.
  StoredTensor Stored(std::string name, size_t offset = 0, DType dtype = DType::kFloat32,
                      std::vector<int64_t> shape = {1}) const {
    return {.name = std::move(name),
            .dtype = dtype,
            .shape = std::move(shape),
            .bytes = std::span<const std::byte>(*storage_).subspan(offset, 4)};
  }

  std::unique_ptr<WeightSource> Make(std::vector<StoredTensor> tensors,
                                     Naming naming = Naming::kUpstream) {
    problems_.clear();
    const TensorFiles files{
        .files = {{.path = "w.bin", .mapping = storage_, .tensors = std::move(tensors)}},
        .problems = {}};
    return MakeFileWeights(files, specs_, naming, "index", problems_);
  }

  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const absl::Status& problem : problems_) texts.emplace_back(problem.message());
    return texts;
  }

  const std::vector<TensorSpec> specs_ = {{"b", "shared.weight", {1}}, {"a", "x", {1}}};
  std::shared_ptr<std::vector<std::byte>> storage_;
  std::vector<absl::Status> problems_;
};

TEST_F(WeightTablesTest, FindsByCanonicalNameAndReadsWithoutACopy) {
  for (const Naming naming : {Naming::kUpstream, Naming::kDiffusers}) {
    const bool upstream = naming == Naming::kUpstream;
    const auto source = Make(
        {Stored(upstream ? "b" : "shared.weight", 8), Stored(upstream ? "a" : "x", 4)}, naming);
    EXPECT_THAT(problems_, IsEmpty());
    EXPECT_FALSE(source->IsSynthetic());
    ASSERT_THAT(source->Tensors(), SizeIs(2));
    EXPECT_EQ(source->Tensors()[0].name, "a");
    EXPECT_EQ(source->Tensors()[1].name, "b");
    const TensorInfo* const b = source->Find("b");
    ASSERT_EQ(b, &source->Tensors()[1]);
    EXPECT_EQ(b->file, "w.bin");
    EXPECT_EQ(b->bytes, 4u);
    EXPECT_EQ(source->Find("c"), nullptr);
    EXPECT_EQ(source->Find(""), nullptr);
    const auto bytes = source->Read(*b);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(bytes->bytes.data(), storage_->data() + 8);
  }
}

TEST_F(WeightTablesTest, BytesOutliveTheSource) {
  auto source = Make({Stored("a", 4), Stored("b")});
  const TensorBytes bytes = source->Read(*source->Find("a")).value();
  const std::weak_ptr<const void> mapping = storage_;
  storage_.reset();
  source.reset();
  EXPECT_FALSE(mapping.expired());
  EXPECT_EQ(bytes.bytes[0], std::byte{4});
}

TEST_F(WeightTablesTest, MisalignedTensorsAreCopied) {
  const auto source = Make({Stored("a", 5), Stored("b")});
  const TensorBytes bytes = source->Read(*source->Find("a")).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.bytes.data()) % 4, 0u);
  ASSERT_THAT(bytes.bytes, SizeIs(4));
  EXPECT_EQ(std::memcmp(bytes.bytes.data(), storage_->data() + 5, 4), 0);
}

TEST_F(WeightTablesTest, ReadRefusesTensorsOfOtherSources) {
  const auto source = Make({Stored("a"), Stored("b")});
  TensorInfo other = *source->Find("a");
  other.name = "c";
  EXPECT_EQ(source->Read(other).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(WeightTablesTest, EveryProblemIsReported) {
  Make({Stored("x", 0, DType::kInt32), Stored("extra\n"), Stored("blocks", 0)}, Naming::kDiffusers);
  EXPECT_THAT(Texts(), ElementsAre("index: tensor shared.weight (b) [1] is missing",
                                   "w.bin: tensor x (a) has dtype I32, expected F32, F16, BF16, "
                                   "F8_E4M3, F8_E5M2 or I8",
                                   "w.bin: tensor blocks is not a part of this model",
                                   "w.bin: tensor extra\\n is not a part of this model"));
  Make({Stored("a", 0, DType::kFloat32, {1, 1}), Stored("b")});
  EXPECT_THAT(Texts(), ElementsAre("w.bin: tensor a has shape [1, 1], expected [1]"));
}

// Else it would depend on the order of the file which of them is the model's.
TEST_F(WeightTablesTest, ATensorUnderTwoNamesIsRefused) {
  Make({Stored("a", 4), Stored("b"), Stored("a", 8)});
  EXPECT_THAT(Texts(), ElementsAre("w.bin: has tensor a under two names; must be there once"));
}

TEST_F(WeightTablesTest, TheTokenTableHasTwoNamesInDiffusers) {
  const auto tied =
      Make({Stored("x"), Stored("encoder.embed_tokens.weight", 12)}, Naming::kDiffusers);
  ASSERT_THAT(problems_, IsEmpty());
  EXPECT_EQ(tied->Read(*tied->Find("b"))->bytes[0], std::byte{12});
  const auto both =
      Make({Stored("x"), Stored("encoder.embed_tokens.weight", 12), Stored("shared.weight", 16)},
           Naming::kDiffusers);
  ASSERT_THAT(problems_, IsEmpty());
  EXPECT_EQ(both->Read(*both->Find("b"))->bytes[0], std::byte{16});
  Make({Stored("a"), Stored("b"), Stored("encoder.embed_tokens.weight")});
  EXPECT_THAT(problems_, SizeIs(1));
}

TEST_F(WeightTablesTest, SyntheticTensorsHaveNoBytes) {
  const auto source = MakeSyntheticWeights({{"t", "u", {3, 5}}}, DType::kBFloat16, "synthetic:x");
  EXPECT_TRUE(source->IsSynthetic());
  EXPECT_EQ(source->SyntheticSeed(), 0u);
  ASSERT_THAT(source->Tensors(), SizeIs(1));
  EXPECT_EQ(source->Tensors()[0].bytes, 30u);
  EXPECT_EQ(source->Tensors()[0].dtype, DType::kBFloat16);
  EXPECT_EQ(source->Tensors()[0].file, "synthetic:x");
  EXPECT_EQ(source->Read(source->Tensors()[0]).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(DTypeTest, NamesAndSizesBelongTogether) {
  const std::vector<std::pair<DType, std::pair<const char*, size_t>>> expected = {
      {DType::kFloat64, {"F64", 8}},        {DType::kFloat32, {"F32", 4}},
      {DType::kFloat16, {"F16", 2}},        {DType::kBFloat16, {"BF16", 2}},
      {DType::kInt64, {"I64", 8}},          {DType::kInt32, {"I32", 4}},
      {DType::kInt16, {"I16", 2}},          {DType::kInt8, {"I8", 1}},
      {DType::kUInt8, {"U8", 1}},           {DType::kBool, {"BOOL", 1}},
      {DType::kFloat8E4M3, {"F8_E4M3", 1}}, {DType::kFloat8E5M2, {"F8_E5M2", 1}}};
  for (const auto& [dtype, traits] : expected) {
    EXPECT_EQ(DTypeName(dtype), traits.first);
    EXPECT_EQ(DTypeSize(dtype), traits.second);
    EXPECT_EQ(DTypeFromName(traits.first), dtype);
  }
  EXPECT_EQ(DTypeFromName("U16"), std::nullopt);
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount(std::vector<int64_t>{3, 0}), 0);
  EXPECT_EQ(ElementCount(std::vector<int64_t>{-1}), std::nullopt);
  EXPECT_EQ(ElementCount(std::vector<int64_t>{int64_t{1} << 32, int64_t{1} << 31}), std::nullopt);
}

}  // namespace
}  // namespace wan
