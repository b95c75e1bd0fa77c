// Few-step LoRAs that are recognised by what their files say.
#include "engine/checkpoint/known_loras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/engine/checkpoint/lora_file_fixture.h"

namespace wan {
namespace {

class KnownLoraTest : public LoraFileTest {
 protected:
  // Changes all linear layers of all blocks, but those of the last block from `layers` on.
  void AddLayers(int64_t rank, int layers = 10) {
    int left = 10 + layers;
    for (int block = 0; block < 2; ++block) {
      for (const char* const attention : {"self_attn", "cross_attn"}) {
        for (const char* const layer : {"q", "k", "v", "o"}) {
          if (left-- > 0)
            AddPair(absl::StrCat("blocks.", block, ".", attention, ".", layer), 8, rank, 8);
        }
      }
      if (left-- > 0) AddPair(absl::StrCat("blocks.", block, ".ffn.0"), 12, rank, 8);
      if (left-- > 0) AddPair(absl::StrCat("blocks.", block, ".ffn.2"), 8, rank, 12);
    }
  }

  std::optional<LoraSchedule> Recognise(const std::string& name) {
    path_ = (folder_ / name).string();
    const absl::StatusOr<LoraFile> file = Read();
    EXPECT_TRUE(file.ok()) << file.status();
    return RecogniseSchedule(*file, SmallConfig());
  }
};

TEST_F(KnownLoraTest, NamesOfPublishedFiles) {
  AddLayers(4);
  for (const char* const name :
       {"wan2.2_t2v_lightx2v_4steps_lora_v1.1_high_noise.safetensors",
        "Wan2.2-Lightning_T2V-A14B-4steps-lora_HIGH_fp16.safetensors",
        "wan2.2_i2v_A14b_low_noise_lora_rank4_lightx2v_4step_1022.safetensors",
        "Wan21_I2V_14B_lightx2v_cfg_step_distill_lora_rank4.safetensors"}) {
    const std::optional<LoraSchedule> schedule = Recognise(name);
    ASSERT_TRUE(schedule.has_value()) << name;
    EXPECT_EQ(*schedule, (LoraSchedule{.steps = 4, .shift = 5, .boundary_step = 2})) << name;
  }
  for (const char* const name :
       {"style.safetensors", "lightning_strikes.safetensors", "4steps.safetensors",
        "wan2.2_t2v_lightx2v_4steps_lora_rank64.safetensors"}) {
    EXPECT_FALSE(Recognise(name).has_value()) << name;
  }
}

TEST_F(KnownLoraTest, FoldersOfPublishedFiles) {
  AddLayers(4);
  for (const char* const folder :
       {"Wan2.2-T2V-A14B-4steps-lora-rank4-Seko-V1.1", "Wan2.2-I2V-A14B-4steps-lora-250928"}) {
    std::filesystem::create_directories(folder_ / folder);
    EXPECT_TRUE(Recognise(absl::StrCat(folder, "/high_noise_model.safetensors"))) << folder;
    EXPECT_FALSE(Recognise(absl::StrCat(folder, "/style.safetensors"))) << folder;
  }
}

TEST_F(KnownLoraTest, TheTitleInTheMetadataCounts) {
  AddLayers(4);
  EXPECT_FALSE(Recognise("renamed.safetensors").has_value());
  header_["__metadata__"]["modelspec.title"] = "Wan2.2 Lightning 4 steps";
  EXPECT_TRUE(Recognise("renamed.safetensors").has_value());
}

TEST_F(KnownLoraTest, ANameAloneIsNotEnough) {
  AddLayers(4, /*layers=*/9);
  EXPECT_FALSE(Recognise("Wan2.2-Lightning-4steps.safetensors").has_value());
}

}  // namespace
}  // namespace wan
