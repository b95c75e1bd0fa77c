#include "engine/checkpoint/foreign_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SafetensorsBytes;
using ::testing::StartsWith;
using testing::TempFolder;
using testing::WriteFile;

std::string NameOf(const std::string& tensor) { return NameForeignModel({"a.weight", tensor}); }

TEST(ForeignModelsTest, SayWhatTheyAreAndWhatHelps) {
  EXPECT_EQ(
      NameOf("vace_blocks.0.self_attn.q.weight"),
      "is a VACE model of Wan, which takes control videos; take the file of TI2V-5B, T2V-A14B "
      "or I2V-A14B");
  EXPECT_THAT(NameOf("face_adapter.fuser_blocks.0.k_norm.weight"), HasSubstr("Wan-Animate"));
  EXPECT_THAT(NameOf("casual_audio_encoder.weights"), HasSubstr("Wan-S2V"));
  EXPECT_THAT(NameOf("img_emb.proj.0.weight"), HasSubstr("image-to-video model of Wan2.1"));
  EXPECT_THAT(NameOf("double_blocks.0.img_attn.qkv.weight"), HasSubstr("HunyuanVideo"));
  EXPECT_THAT(NameOf("patchify_proj.weight"), HasSubstr("LTX-Video"));
  EXPECT_EQ(NameOf("blocks.0.self_attn.q.lora_down.weight"),
            "is a LoRA, not a whole model; register it with --lora");
  EXPECT_THAT(NameOf("blocks.0.ffn.0.dora_scale"), HasSubstr("is a DoRA"));
  EXPECT_THAT(NameOf("first_stage_model.conv1.weight"),
              HasSubstr("has several parts of a model in one file"));
  EXPECT_THAT(NameOf("controlnet_blocks.0.weight"), HasSubstr("is a ControlNet"));
  EXPECT_THAT(NameOf("vision_model.embeddings.class_embedding"), HasSubstr("CLIP image encoder"));
  EXPECT_EQ(NameForeignModel({"blocks.0.self_attn.q.weight", "head.head.weight"}), "");
}

TEST(ForeignModelsTest, T5LacksTheTablesOfUmt5) {
  const std::string first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  const std::string second = "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight";
  const std::string other = "encoder.block.1.layer.0.SelfAttention.q.weight";
  EXPECT_THAT(NameForeignModel({first, other}), HasSubstr("is a T5 text encoder, not UMT5"));
  EXPECT_EQ(NameForeignModel({first, other, second}), "");
}

// Files that cannot be a part of a model, in the place of one: one sentence each.
class OtherFilesTest : public ::testing::Test {
 protected:
  std::string ErrorOf(std::string_view bytes) {
    WriteFile(path_, bytes);
    return Open("vae=" + path_ + ",transformer=" + path_ + ",text_encoder=" + path_ +
                ",tokenizer=" + path_);
  }
  static std::string Open(const std::string& path) {
    const absl::Status status = Checkpoint::Open(path).status();
    EXPECT_FALSE(status.ok()) << path;
    return std::string(status.message());
  }

  TempFolder folder_;
  const std::string path_ = (folder_ / "wan.safetensors").string();
};

TEST_F(OtherFilesTest, WhatIsNoTensorFileIsNamed) {
  EXPECT_THAT(ErrorOf("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"),
              StartsWith(path_ + ": is a Git LFS pointer, not the file: run git lfs pull"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE html><html><body>Sign in</body></html>"),
              StartsWith(path_ + ": is an HTML page"));
  EXPECT_THAT(ErrorOf(""), StartsWith(path_ + ": is empty (0 bytes)"));
  EXPECT_THAT(ErrorOf(R"({"error":"Invalid username or password."})"),
              StartsWith(path_ + ": is a JSON text"));
}

TEST_F(OtherFilesTest, ACutDownloadIsNamed) {
  const std::string whole = SafetensorsBytes(
      R"({"a":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}})", std::string(256, 'x'));
  EXPECT_THAT(ErrorOf(whole.substr(0, 200)),
              AllOf(StartsWith(path_), HasSubstr("the file was cut"), HasSubstr("download")));
  EXPECT_THAT(ErrorOf(whole.substr(0, 30)), AllOf(StartsWith(path_), HasSubstr("download")));
}

TEST_F(OtherFilesTest, ALinkOfACacheWithoutItsBlobIsNamed) {
  const std::string link = (folder_ / "high.safetensors").string();
  std::filesystem::create_symlink("../../blobs/abc", link);
  EXPECT_THAT(Open("path=/nowhere,transformer.high=" + link), HasSubstr("/nowhere"));
  EXPECT_THAT(
      Open("vae=" + link + ",transformer=" + link + ",text_encoder=" + link + ",tokenizer=" + link),
      HasSubstr("the folder blobs is needed beside snapshots"));
}

TEST_F(OtherFilesTest, OneFileAloneSaysWhatItIs) {
  WriteFile(path_,
            SafetensorsBytes(
                R"({"vace_blocks.0.x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "aaaa"));
  EXPECT_THAT(Open(path_), StartsWith(path_ + ": is a VACE model of Wan"));
  EXPECT_THAT(Open(WAN_CHECKPOINT_DIR "/../packed/comfy/vae.safetensors"),
              HasSubstr("is only the VAE of a model; name all parts"));
}

}  // namespace
}  // namespace wan
