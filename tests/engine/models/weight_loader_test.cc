#include "engine/models/weight_loader.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "engine/checkpoint/weight_tables.h"

namespace wan {
namespace {

const std::vector<TensorSpec> kSpecs = {{"a.weight", "a.weight", {64, 100}},
                                        {"b.weight", "b.weight", {64, 100}},
                                        {"norm.weight", "norm.weight", {100}}};

at::Tensor Load(const char* name, uint64_t seed = 0) {
  const auto source = MakeSyntheticWeights(kSpecs, DType::kFloat32, "synthetic:x", seed);
  WeightLoader loader(*source, at::kCPU, at::kFloat);
  at::Tensor tensor = loader.Get(name, source->Find(name)->shape);
  EXPECT_TRUE(loader.status().ok()) << loader.status();
  EXPECT_EQ(loader.bytes(), static_cast<int64_t>(tensor.nbytes()));
  return tensor;
}

TEST(SyntheticWeightsTest, DependOnNameAndSeedAlone) {
  EXPECT_TRUE(at::equal(Load("a.weight"), Load("a.weight")));
  EXPECT_FALSE(at::equal(Load("a.weight"), Load("b.weight")));
  // Two experts have the same names.
  EXPECT_FALSE(at::equal(Load("a.weight", 0), Load("a.weight", 1)));
}

TEST(SyntheticWeightsTest, KeepActivationsInRange) {
  // Columns are the inputs: 1 / sqrt(100).
  EXPECT_NEAR(Load("a.weight").std().item<double>(), 0.1, 0.005);
  EXPECT_TRUE(at::equal(Load("norm.weight"), at::ones({100})));
}

TEST(WeightLoaderTest, KeepsTheFirstProblemAndGivesZeros) {
  const auto source = MakeSyntheticWeights(kSpecs, DType::kFloat32, "synthetic:x");
  WeightLoader loader(*source, at::kCPU, at::kFloat);
  const at::Tensor wrong = loader.Get("a.weight", {64, 101});
  EXPECT_EQ(wrong.sizes(), at::IntArrayRef({64, 101}));
  EXPECT_FALSE(wrong.any().item<bool>());
  loader.Get("missing", {1});
  EXPECT_EQ(loader.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loader.status().message()), testing::HasSubstr("a.weight"));
}

}  // namespace
}  // namespace wan
