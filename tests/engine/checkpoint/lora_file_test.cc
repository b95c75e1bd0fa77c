// Names and scales of LoRA files, and what is refused.
#include "engine/checkpoint/lora_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/lora_keys.h"
#include "tests/engine/checkpoint/lora_file_fixture.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SafetensorsBytes;
using ::testing::SizeIs;
using testing::WriteFile;

struct KeyCase {
  const char* key;
  const char* module;
  LoraPart part;
};

const KeyCase kKeys[] = {
    // diffusers
    {"transformer.blocks.0.attn1.to_q.lora_A.weight", "blocks.0.self_attn.q", LoraPart::kDown},
    {"transformer.blocks.1.attn2.to_out.0.lora_B.weight", "blocks.1.cross_attn.o", LoraPart::kUp},
    {"transformer.blocks.0.ffn.net.0.proj.lora.down.weight", "blocks.0.ffn.0", LoraPart::kDown},
    {"transformer.blocks.0.ffn.net.2.lora.up.weight", "blocks.0.ffn.2", LoraPart::kUp},
    {"transformer.condition_embedder.time_proj.lora_A.weight", "time_projection.1",
     LoraPart::kDown},
    {"transformer.blocks.0.attn1.to_q.lora_B.bias", "blocks.0.self_attn.q", LoraPart::kUpBias},
    // PEFT
    {"base_model.model.blocks.0.attn1.to_k.lora_A.default.weight", "blocks.0.self_attn.k",
     LoraPart::kDown},
    {"base_model.model.transformer.blocks.0.attn1.to_k.lora_B.weight", "blocks.0.self_attn.k",
     LoraPart::kUp},
    {"base_model.model.blocks.0.self_attn.v.lora_B.default.bias", "blocks.0.self_attn.v",
     LoraPart::kUpBias},
    // upstream's names: ComfyUI, DiffSynth, nothing before them
    {"diffusion_model.blocks.0.self_attn.q.lora_down.weight", "blocks.0.self_attn.q",
     LoraPart::kDown},
    {"diffusion_model.blocks.0.self_attn.q.alpha", "blocks.0.self_attn.q", LoraPart::kAlpha},
    {"diffusion_model.blocks.0.ffn.2.diff_b", "blocks.0.ffn.2", LoraPart::kBiasDifference},
    {"diffusion_model.blocks.0.norm3.diff", "blocks.0.norm3", LoraPart::kDifference},
    {"diffusion_model.blocks.0.self_attn.norm_q.diff", "blocks.0.self_attn.norm_q",
     LoraPart::kDifference},
    {"diffusion_model.blocks.1.diff_m", "blocks.1.modulation", LoraPart::kDifference},
    {"diffusion_model.head.diff_m", "head.modulation", LoraPart::kDifference},
    {"diffusion_model.head.head.diff", "head.head", LoraPart::kDifference},
    {"pipe.dit.blocks.0.self_attn.o.lora_A.default.weight", "blocks.0.self_attn.o",
     LoraPart::kDown},
    {"blocks.0.cross_attn.k.lora_A.weight", "blocks.0.cross_attn.k", LoraPart::kDown},
    {"model.diffusion_model.text_embedding.0.lora_up.weight", "text_embedding.0", LoraPart::kUp},
    // kohya, LyCORIS
    {"lora_unet_blocks_0_self_attn_q.lora_down.weight", "blocks.0.self_attn.q", LoraPart::kDown},
    {"lora_unet__blocks_1_cross_attn_o.lora_up.weight", "blocks.1.cross_attn.o", LoraPart::kUp},
    {"lora_unet_blocks_0_attn1_to_out_0.alpha", "blocks.0.self_attn.o", LoraPart::kAlpha},
    {"lycoris_blocks_0_ffn_net_0_proj.lora_down.weight", "blocks.0.ffn.0", LoraPart::kDown},
    {"lora_unet_time_projection_1.lora_down.weight", "time_projection.1", LoraPart::kDown},
    {"lora_unet_blocks_0_norm3.w_norm", "blocks.0.norm3", LoraPart::kDifference},
    {"lora_unet_blocks_0_norm3.b_norm", "blocks.0.norm3", LoraPart::kBiasDifference},
    {"lora_unet_blocks_0_self_attn_q.dora_scale", "blocks.0.self_attn.q", LoraPart::kMagnitude},
    {"base_model.model.blocks.0.attn1.to_q.lora_magnitude_vector", "blocks.0.self_attn.q",
     LoraPart::kMagnitude},
    {"blocks.0.attn1.to_q.lora_magnitude_vector.default.weight", "blocks.0.self_attn.q",
     LoraPart::kMagnitude},
    {"lora_unet_blocks_0_self_attn_q.hada_w1_a", "blocks.0.self_attn.q", LoraPart::kFirstUp},
    {"lora_unet_blocks_0_self_attn_q.hada_w2_b", "blocks.0.self_attn.q", LoraPart::kSecondDown},
    {"diffusion_model.blocks.0.self_attn.q.lokr_w1", "blocks.0.self_attn.q", LoraPart::kLeft},
    {"diffusion_model.blocks.0.self_attn.q.lokr_w2_a", "blocks.0.self_attn.q", LoraPart::kRightUp},
    // older diffusers, and no ending after the part
    {"blocks.0.attn1.to_q_lora.up.weight", "blocks.0.self_attn.q", LoraPart::kUp},
    {"blocks.0.attn1.to_q.lora_linear_layer.down.weight", "blocks.0.self_attn.q", LoraPart::kDown},
    {"blocks.0.self_attn.q.lora_A", "blocks.0.self_attn.q", LoraPart::kDown},
    // some of each
    {"lora_unet_blocks_0.self_attn.q.lora_down.weight", "blocks.0.self_attn.q", LoraPart::kDown},
    {"diffusion_model.time.projection.1.lora_B.weight", "time_projection.1", LoraPart::kUp},
    // The image branch of Wan2.1's models, under every trainer's names.
    {"diffusion_model.blocks.0.cross_attn.k_img.lora_down.weight", "", LoraPart::kImageBranch},
    {"diffusion_model.blocks.1.cross_attn.v_img.alpha", "", LoraPart::kImageBranch},
    {"diffusion_model.blocks.1.cross_attn.norm_k_img.diff", "", LoraPart::kImageBranch},
    {"diffusion_model.blocks.1.cross_attn.k.img.lora_A.weight", "", LoraPart::kImageBranch},
    {"diffusion_model.blocks.1.cross_attn.norm.k.img.lora_A.weight", "", LoraPart::kImageBranch},
    {"lora_unet_blocks_0_cross_attn_v_img.lora_up.weight", "", LoraPart::kImageBranch},
    {"lora_unet__blocks_0_cross_attn_k_img.alpha", "", LoraPart::kImageBranch},
    {"transformer.blocks.0.attn2.add_k_proj.lora_A.weight", "", LoraPart::kImageBranch},
    {"transformer.blocks.0.attn2.norm_added_k.diff", "", LoraPart::kImageBranch},
    {"diffusion_model.img_emb.proj.0.diff_b", "", LoraPart::kImageBranch},
    {"img_emb.proj.3.lora_down.weight", "", LoraPart::kImageBranch},
    {"diffusion_model.img_emb.emb_pos.diff", "", LoraPart::kImageBranch},
    {"lora_unet_blocks_0_cross_attn_v_img.hada_w1_a", "", LoraPart::kImageBranch},
    {"lora_unet_img_emb_proj_1.lora_down.weight", "", LoraPart::kImageBranch},
    {"transformer.condition_embedder.image_embedder.ff.net.0.proj.lora_A.weight", "",
     LoraPart::kImageBranch},
};

TEST(LoraKeyTest, EverySpellingIsKnown) {
  const LoraKeyReader reader(SmallConfig());
  for (const KeyCase& c : kKeys) {
    const absl::StatusOr<LoraKey> key = reader.Read(c.key);
    ASSERT_TRUE(key.ok()) << c.key << " " << key.status();
    EXPECT_EQ(*key, (LoraKey{c.module, c.part})) << c.key;
  }
}

struct RefusedKey {
  const char* key;
  absl::StatusCode code;
  const char* message;
};

const RefusedKey kRefusedKeys[] = {
    {"diffusion_model.blocks.2.self_attn.q.lora_down.weight", absl::StatusCode::kInvalidArgument,
     "the last block of this model is 1"},
    {"diffusion_model.blocks.2.cross_attn.k_img.lora_down.weight",
     absl::StatusCode::kInvalidArgument, "the last block of this model is 1"},
    {"diffusion_model.blocks.0.self_attn.k_img.lora_down.weight",
     absl::StatusCode::kInvalidArgument, "is not a part of this model"},
    {"diffusion_model.img_emb.proj.7.lora_down.weight", absl::StatusCode::kInvalidArgument,
     "is not a part of this model"},
    {"transformer_2.blocks.0.attn1.to_q.lora_A.weight", absl::StatusCode::kInvalidArgument,
     "a file of its own"},
    {"lora_te_blocks_0_q.lora_down.weight", absl::StatusCode::kInvalidArgument, "text encoder"},
    {"double_blocks.0.img_attn.qkv.lora_A.weight", absl::StatusCode::kInvalidArgument,
     "is not a part of this model"},
    {"blocks.0.self_attn.q.weight", absl::StatusCode::kInvalidArgument, "none of the endings"},
    {"blocks.0.self_attn.q.oft_blocks", absl::StatusCode::kUnimplemented, "OFT"},
    {"lora_unet_patch_embedding.hada_t1", absl::StatusCode::kUnimplemented, "core of a LoHa"},
    {"lora_unet_patch_embedding.lokr_t2", absl::StatusCode::kUnimplemented, "core of a LoKr"},
};

TEST(LoraKeyTest, OthersAreRefusedWithAReason) {
  const LoraKeyReader reader(SmallConfig());
  for (const RefusedKey& c : kRefusedKeys) {
    const absl::Status status = reader.Read(c.key).status();
    EXPECT_EQ(status.code(), c.code) << c.key;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.key;
  }
}

TEST_F(LoraFileTest, AlphaIsTheRankWhereNothingSaysMore) {
  AddPair("blocks.0.self_attn.q", 8, 3, 8);
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->terms, SizeIs(1));
  EXPECT_EQ(file->terms[0].target, "blocks.0.self_attn.q.weight");
  EXPECT_EQ(file->terms[0].rank(), 3);
  EXPECT_EQ(file->terms[0].factor, 1);
  EXPECT_EQ(file->rank, 3);
  EXPECT_EQ(file->bytes, 4U * (3 * 8 + 8 * 3));
}

TEST_F(LoraFileTest, NamesTheFilesThatItWasReadFrom) {
  AddPair("base_model.model.blocks.0.attn1.to_q", 8, 4, 8);
  const std::string settings = (folder_ / "adapter_config.json").string();
  WriteFile(settings, R"({"lora_alpha":8,"peft_type":"LORA"})");
  EXPECT_THAT(Read()->files, SizeIs(1)) << "the settings are another file's";
  path_ = (folder_ / "adapter_model.safetensors").string();
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->files, SizeIs(2));
  EXPECT_EQ(file->files[0],
            (ModelFile{"adapter_model.safetensors", path_, *FileVersion::Of(path_)}));
  EXPECT_EQ(file->files[1],
            (ModelFile{"adapter_config.json", settings, *FileVersion::Of(settings)}));
}

TEST_F(LoraFileTest, ConvolutionsAndDifferences) {
  Add("diffusion_model.patch_embedding.lora_down.weight", {2, 3, 1, 2, 2});
  Add("diffusion_model.patch_embedding.lora_up.weight", {8, 2, 1, 1, 1});
  Add("diffusion_model.blocks.0.diff_m", {1, 6, 8});
  Add("diffusion_model.blocks.0.norm3.diff", {8}, "BF16");
  Add("diffusion_model.blocks.0.norm3.diff_b", {8}, "F16");
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->terms, SizeIs(4));
  EXPECT_EQ(file->terms[0].target, "blocks.0.modulation");
  EXPECT_EQ(file->terms[1].target, "blocks.0.norm3.bias");
  EXPECT_EQ(file->terms[2].target, "blocks.0.norm3.weight");
  EXPECT_EQ(file->terms[3].target, "patch_embedding.weight");
  EXPECT_EQ(file->terms[3].columns, 12);
}

TEST_F(LoraFileTest, AHalfAloneIsDamage) {
  Add("blocks.0.self_attn.q.lora_A.weight", {4, 8});
  ExpectRefused(absl::StatusCode::kDataLoss,
                {"blocks.0.self_attn.q.lora_A.weight", "lora_B (lora_up) is missing"});
}

TEST_F(LoraFileTest, TheOtherHalfAlone) {
  Add("blocks.0.self_attn.q.lora_B.weight", {8, 4});
  ExpectRefused(absl::StatusCode::kDataLoss, {"lora_A (lora_down) is missing"});
}

TEST_F(LoraFileTest, AlphaAlone) {
  Add("blocks.0.self_attn.q.alpha", {});
  ExpectRefused(absl::StatusCode::kDataLoss, {"blocks.0.self_attn.q.alpha", "stands alone"});
}

TEST_F(LoraFileTest, ForAWiderModel) {
  AddPair("diffusion_model.blocks.0.self_attn.q", 5120, 2, 5120);
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                {"diffusion_model.blocks.0.self_attn.q.lora_A.weight", "[2, 5120]",
                 "model of width 5120 (the 14B models), but this model has width 8"});
}

TEST_F(LoraFileTest, WithOtherRows) {
  AddPair("blocks.0.ffn.0", 13, 2, 8);
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                {"blocks.0.ffn.0.lora_B.weight", "[13, 2], expected [12, rank]"});
}

TEST_F(LoraFileTest, HalvesOfDifferentRanks) {
  Add("blocks.0.self_attn.q.lora_A.weight", {4, 8});
  Add("blocks.0.self_attn.q.lora_B.weight", {8, 3});
  ExpectRefused(absl::StatusCode::kDataLoss,
                {"blocks.0.self_attn.q.lora_B.weight", "ranks differ"});
}

TEST_F(LoraFileTest, RankZero) {
  AddPair("blocks.0.self_attn.q", 8, 0, 8);
  ExpectRefused(absl::StatusCode::kDataLoss, {"at least one row"});
}

TEST_F(LoraFileTest, NoMatrix) {
  Add("blocks.0.self_attn.q.lora_A.weight", {8});
  Add("blocks.0.self_attn.q.lora_B.weight", {8, 1});
  ExpectRefused(absl::StatusCode::kDataLoss, {"is not a matrix"});
}

TEST_F(LoraFileTest, ADifferenceOfAnotherShape) {
  Add("blocks.0.norm3.diff", {9});
  ExpectRefused(absl::StatusCode::kInvalidArgument, {"blocks.0.norm3.diff", "[9], expected [8]"});
}

TEST_F(LoraFileTest, ABiasThatIsNone) {
  Add("blocks.0.self_attn.norm_q.diff_b", {8});
  ExpectRefused(absl::StatusCode::kInvalidArgument, {"norm_q", "which has none"});
}

TEST_F(LoraFileTest, OneModuleInTwoStyles) {
  AddPair("transformer.blocks.0.attn1.to_q", 8, 2, 8);
  AddPair("diffusion_model.blocks.0.self_attn.q", 8, 2, 8);
  ExpectRefused(absl::StatusCode::kDataLoss, {"are the same part of blocks.0.self_attn.q"});
}

TEST_F(LoraFileTest, AnAlphaThatIsNoNumber) {
  AddPair("blocks.0.self_attn.q", 8, 2, 8);
  Add("blocks.0.self_attn.q.alpha", {}, "F32", Scalar(std::nanf("")));
  ExpectRefused(absl::StatusCode::kDataLoss,
                {"blocks.0.self_attn.q.alpha", "is not a finite number"});
}

TEST_F(LoraFileTest, AnAlphaOfTwo) {
  AddPair("blocks.0.self_attn.q", 8, 2, 8);
  Add("blocks.0.self_attn.q.alpha", {2});
  ExpectRefused(absl::StatusCode::kDataLoss, {"is not a finite number"});
}

TEST_F(LoraFileTest, DtypesThatAreNotServed) {
  header_["blocks.0.self_attn.q.lora_A.weight"] = {
      {"dtype", "F8_E4M3"}, {"shape", {2, 8}}, {"data_offsets", {0, 16}}};
  data_.resize(16);
  ExpectRefused(absl::StatusCode::kUnimplemented, {"F8_E4M3"});
}

TEST_F(LoraFileTest, TheImageBranchIsLeftOut) {
  AddPair("diffusion_model.blocks.0.cross_attn.q", 8, 2, 8);
  AddPair("diffusion_model.blocks.0.cross_attn.v_img", 8, 2, 8);
  AddPair("diffusion_model.blocks.0.cross_attn.k.img", 8, 2, 8);
  Add("diffusion_model.img_emb.proj.0.diff_b", {1280});
  const auto file = Read();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->terms, SizeIs(1));
  EXPECT_EQ(file->terms[0].target, "blocks.0.cross_attn.q.weight");
  EXPECT_THAT(file->left_out,
              ::testing::ElementsAre("diffusion_model.blocks.0.cross_attn.k.img.lora_A.weight",
                                     "diffusion_model.blocks.0.cross_attn.k.img.lora_B.weight",
                                     "diffusion_model.blocks.0.cross_attn.v_img.lora_A.weight",
                                     "diffusion_model.blocks.0.cross_attn.v_img.lora_B.weight",
                                     "diffusion_model.img_emb.proj.0.diff_b"));
  EXPECT_EQ(file->bytes, 4U * (2 * 8 + 8 * 2));
}

TEST_F(LoraFileTest, NothingButTheImageBranch) {
  AddPair("blocks.0.cross_attn.k_img", 8, 2, 8);
  ExpectRefused(absl::StatusCode::kInvalidArgument, {"nothing but the image branch"});
}

TEST_F(LoraFileTest, OtherUnknownTensorsAreStillRefusedBesideTheImageBranch) {
  AddPair("blocks.0.cross_attn.k_img", 8, 2, 8);
  AddPair("blocks.0.cross_attn.q", 8, 2, 8);
  AddPair("vace_blocks.0.cross_attn.q", 8, 2, 8);
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                {"vace_blocks.0.cross_attn.q.lora_A.weight", "is not a part of this model"});
}

// Every kind of tensor, every dtype, and a value far from the beginning.
TEST_F(LoraFileTest, ValuesThatAreNotFiniteAreRefused) {
  struct Bad {
    const char* dtype;
    std::string value;
  };
  const auto text = [](uint16_t v) { return std::string(reinterpret_cast<const char*>(&v), 2); };
  const Bad bads[] = {{"F32", Scalar(std::nanf(""))}, {"F32", Scalar(-HUGE_VALF)},
                      {"F16", text(0x7C00)},          {"F16", text(0xFE00)},
                      {"BF16", text(0x7F80)},         {"BF16", text(0xFFC0)}};
  const char* const names[] = {"blocks.0.ffn.0.lora_A.weight", "blocks.0.ffn.0.lora_B.weight",
                               "blocks.0.ffn.0.lora_B.bias", "blocks.1.ffn.0.diff",
                               "blocks.1.ffn.0.diff_b"};
  const std::vector<int64_t> shapes[] = {{2, 8}, {12, 2}, {12}, {12, 8}, {12}};
  for (const Bad& bad : bads) {
    for (size_t worst = 0; worst < std::size(names); ++worst) {
      header_ = nlohmann::json::object();
      data_.clear();
      std::string where;
      for (size_t i = 0; i < std::size(names); ++i) {
        std::string bytes;
        if (i == worst) {
          const int64_t last = *ElementCount(shapes[i]) - 1;
          bytes = std::string(static_cast<size_t>(last) * bad.value.size(), '\0') + bad.value;
          where = absl::StrCat("its element ", last);
        }
        Add(names[i], shapes[i], bad.dtype, std::move(bytes));
      }
      ExpectRefused(
          absl::StatusCode::kDataLoss,
          {absl::StrCat("tensor ", names[worst], " has a value that is NaN or infinite"), where});
    }
  }
}

// Nobody computes with them.
TEST_F(LoraFileTest, ValuesThatAreLeftOutMayBeAnything) {
  AddPair("blocks.0.cross_attn.q", 8, 2, 8);
  Add("img_emb.proj.0.diff_b", {1}, "F32", Scalar(std::nanf("")));
  EXPECT_TRUE(Read().ok());
}

TEST_F(LoraFileTest, AFolderThatPeftDidNotWrite) {
  AddPair("blocks.0.self_attn.q", 8, 2, 8);
  ASSERT_TRUE(Read().ok());
  const absl::Status status = ReadLoraFile(folder_.string(), SmallConfig()).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("is a folder without adapter_model.safetensors"),
                    HasSubstr("for example " + path_)));
}

TEST_F(LoraFileTest, LinksToNothing) {
  AddPair("blocks.0.self_attn.q", 8, 4, 8);
  std::filesystem::create_symlink("../blobs/0a1b", path_);
  const absl::Status status = ReadLoraFile(path_, SmallConfig()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path_ + ": is a link to "), HasSubstr("/blobs/0a1b"),
                    HasSubstr("which does not exist")));
  // Settings that are not there any more must not become alpha = rank.
  path_ = (folder_ / "adapter_model.safetensors").string();
  std::filesystem::create_symlink("gone.json", folder_ / "adapter_config.json");
  const absl::Status settings = Read().status();
  EXPECT_THAT(std::string(settings.message()),
              AllOf(HasSubstr("adapter_config.json: is a link to "), HasSubstr("gone.json")));
}

TEST_F(LoraFileTest, AGitLfsPointer) {
  WriteFile(path_, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99999\n");
  EXPECT_EQ(std::string(ReadLoraFile(path_, SmallConfig()).status().message()),
            path_ + ": is a Git LFS pointer, not the file: run git lfs pull");
}

TEST_F(LoraFileTest, AnEmptyFile) { ExpectRefused(absl::StatusCode::kDataLoss, {"no tensors"}); }

TEST_F(LoraFileTest, AMissingFile) {
  const absl::Status status = ReadLoraFile(path_, SmallConfig()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

// A sound file, cut anywhere: never read as something else.
TEST_F(LoraFileTest, CutAnywhere) {
  AddPair("blocks.0.self_attn.q", 8, 2, 8);
  const std::string whole = SafetensorsBytes(header_.dump(), data_);
  WriteFile(path_, whole);
  ASSERT_TRUE(ReadLoraFile(path_, SmallConfig()).ok());
  for (size_t length = 0; length < whole.size(); length += 3) {
    WriteFile(path_, whole.substr(0, length));
    EXPECT_EQ(ReadLoraFile(path_, SmallConfig()).status().code(), absl::StatusCode::kDataLoss)
        << length;
  }
}

}  // namespace
}  // namespace wan
