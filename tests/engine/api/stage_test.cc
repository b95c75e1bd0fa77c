#include "engine/api/stage.h"

#include <gtest/gtest.h>

namespace wan {
namespace {

// The names are a contract: clients, dashboards and stored reports know them.
TEST(StageTest, NamesAreTheBenchmarks) {
  const struct {
    Stage stage;
    const char* name;
    const char* kind;
  } cases[] = {
      {StageKind::kModelInitialization, "Model_Initialization", "Model_Initialization"},
      {StageKind::kTi2vPreprocess, "TI2V_Preprocess", "TI2V_Preprocess"},
      {StageKind::kT2vPreprocess, "T2V_Preprocess", "T2V_Preprocess"},
      {StageKind::kI2vPreprocess, "I2V_Preprocess", "I2V_Preprocess"},
      {StageKind::kT5Encoding, "T5_Encoding", "T5_Encoding"},
      {StageKind::kVaeEncoding, "VAE_Encoding", "VAE_Encoding"},
      {StageKind::kStepLoading, "Step_0_Loading", "Step_Loading"},
      {{StageKind::kStepLoading, 12}, "Step_12_Loading", "Step_Loading"},
      {StageKind::kLoraMerging, "LoRA_Merging", "LoRA_Merging"},
      {{StageKind::kStepInference, 3}, "Step_3_Inference", "Step_Inference"},
      {StageKind::kVaeDecoding, "VAE_Decoding", "VAE_Decoding"},
      {StageKind::kVideoEncoding, "Video_Encoding", "Video_Encoding"},
      {StageKind::kQueueWait, "Queue_Wait", "Queue_Wait"},
      {StageKind::kTotalExecution, "Total_Execution", "Total_Execution"},
  };
  for (const auto& [stage, name, kind] : cases) {
    EXPECT_EQ(NameOf(stage), name);
    EXPECT_EQ(NameOf(stage.kind), kind);
    EXPECT_EQ(ParseStage(name), stage) << name;
  }
}

TEST(StageTest, NoOtherTextIsAStage) {
  for (const char* const text :
       {"", "Step_Inference", "Step_Loading", "Step__Inference", "Step_x_Inference", "Step_7",
        "Step_7_", "Step_-1_Inference", "Step_+1_Inference", "Step_01_Inference",
        "Step_1_Inference ", "Step_ 1_Inference", "Step_99999999999_Inference", "Step_1_Decoding",
        "vae_decoding", "VAE_Decoding_", "Preprocess"}) {
    EXPECT_EQ(ParseStage(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace wan
