#include "engine/inspect/diffusers_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::HasSubstr;

void ExpectSameWeights(const WeightSource& got, const WeightSource& want) {
  ASSERT_EQ(got.Tensors().size(), want.Tensors().size());
  for (const TensorInfo& tensor : want.Tensors()) {
    SCOPED_TRACE(tensor.name);
    const TensorInfo* const found = got.Find(tensor.name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->shape, tensor.shape);
    ASSERT_EQ(found->dtype, tensor.dtype);
    const auto a = got.Read(*found);
    const auto b = want.Read(tensor);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(std::memcmp(a->bytes.data(), b->bytes.data(), tensor.bytes), 0);
  }
}

class DiffusersLayoutTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::string To() const { return (folder_ / "to").string(); }
  testing::TempFolder folder_;
};

TEST_P(DiffusersLayoutTest, EveryTensorAndDimensionIsTheSame) {
  const std::string from = std::string(WAN_CHECKPOINT_DIR "/") + GetParam();
  const absl::Status status = WriteDiffusersLayout(from, To());
  ASSERT_TRUE(status.ok()) << status;
  const auto want = Checkpoint::Open(from);
  const auto got = Checkpoint::Open(To());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->layout(), Layout::kDiffusers);
  EXPECT_EQ((*got)->family(), (*want)->family());
  EXPECT_EQ((*got)->expert_boundary(), (*want)->expert_boundary());
  ASSERT_EQ((*got)->num_experts(), (*want)->num_experts());
  EXPECT_EQ((*got)->text_encoder_config(), (*want)->text_encoder_config());
  EXPECT_EQ((*got)->vae_config(), (*want)->vae_config());
  for (int expert = 0; expert < (*want)->num_experts(); ++expert) {
    EXPECT_EQ((*got)->transformer_config(expert), (*want)->transformer_config(expert));
    ExpectSameWeights((*got)->transformer(expert), (*want)->transformer(expert));
  }
  ExpectSameWeights((*got)->text_encoder(), (*want)->text_encoder());
  ExpectSameWeights((*got)->vae(), (*want)->vae());
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, DiffusersLayoutTest,
                         ::testing::Values("ti2v-5b/original", "ti2v-5b/diffusers",
                                           "t2v-a14b/original", "i2v-a14b/original"));

TEST_F(DiffusersLayoutTest, KeepsFewStepsAndDefaults) {
  const std::filesystem::path from = folder_ / "from";
  testing::LinkFolder(WAN_CHECKPOINT_DIR "/t2v-a14b/original", from);
  testing::WriteFile(
      from / "few_step.json",
      R"({"denoising_step_list": [1000, 500], "sample_shift": 3, "boundary_step_index": 1})");
  testing::WriteFile(from / "generation_defaults.json", R"({"fps": 8})");
  ASSERT_TRUE(WriteDiffusersLayout(from.string(), To()).ok());
  const auto got = Checkpoint::Open(To());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->few_step(),
            (FewStepConfig{.timesteps = {1000, 500}, .shift = 3, .boundary_step_index = 1}));
  ASSERT_TRUE((*got)->generation_defaults().has_value());
  EXPECT_EQ((*got)->generation_defaults()->fps, 8);
}

TEST_F(DiffusersLayoutTest, CopiesNoWidenedWeights) {
  const absl::Status status = WriteDiffusersLayout(
      WAN_CHECKPOINT_DIR "/t2v-a14b/original,transformer.high=" WAN_CHECKPOINT_DIR
                         "/../packed/gguf/high.gguf",
      To());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is stored as Q8_0; only tensors in F32"));
}

TEST_F(DiffusersLayoutTest, KeepsARecognisedSchedule) {
  const std::filesystem::path from = folder_ / "from";
  testing::LinkFolder(WAN_CHECKPOINT_DIR "/ti2v-5b/diffusers", from);
  nlohmann::json index = nlohmann::json::parse(testing::ReadFile(from / "model_index.json"));
  index["_class_name"] = "WanDMDPipeline";
  testing::ReplaceFile(from / "model_index.json", index.dump());
  ASSERT_TRUE(WriteDiffusersLayout(from.string(), To()).ok());
  const auto got = Checkpoint::Open(To());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->few_step(), (FewStepConfig{.timesteps = {1000, 280, 120},
                                               .shift = 8,
                                               .solver = "lcm",
                                               .rounding = TimestepRounding::kWhole}));
}

TEST_F(DiffusersLayoutTest, SaysWhatIsInTheWay) {
  EXPECT_EQ(WriteDiffusersLayout((folder_ / "absent").string(), To()).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(WriteDiffusersLayout("synthetic:ti2v-5b", To()).code(),
            absl::StatusCode::kFailedPrecondition);
  testing::WriteFile(folder_ / "f", "x");
  const absl::Status status =
      WriteDiffusersLayout(WAN_CHECKPOINT_DIR "/ti2v-5b/original", (folder_ / ".").string());
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not empty"));
}

}  // namespace
}  // namespace wan
