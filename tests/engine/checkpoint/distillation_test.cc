// Distilled checkpoints are known by their files, and models that compute something else are named.
#include "engine/checkpoint/distillation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/safetensors_writer.h"
#include "tests/engine/checkpoint/state_dict.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWeights[] = "diffusion_pytorch_model.safetensors";

class DistillationTest : public ::testing::Test {
 protected:
  fs::path Link(const std::string& golden) {
    const fs::path path = folder_ / std::to_string(links_++);
    testing::LinkFolder(WAN_CHECKPOINT_DIR "/" + golden, path);
    return path;
  }

  static void ChangeJson(const fs::path& path, const nlohmann::json& changes) {
    nlohmann::json json = nlohmann::json::parse(testing::ReadFile(path));
    json.merge_patch(changes);
    testing::ReplaceFile(path, json.dump());
  }

  static std::optional<FewStepConfig> FewStepOf(const fs::path& path) {
    const auto checkpoint = Checkpoint::Open(path.string());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? (*checkpoint)->few_step() : std::nullopt;
  }

  static std::string ErrorOf(const fs::path& path, absl::StatusCode code) {
    const absl::Status status = Checkpoint::Open(path.string()).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  // Adds a tensor of one element to a file of weights.
  static void AddTensor(const fs::path& path, const std::string& name) {
    const TensorFile file = ReadSafetensors(path.string()).value();
    std::vector<SafetensorsTensor> tensors;
    for (const StoredTensor& tensor : file.tensors) {
      tensors.push_back(
          {tensor.name, std::string(DTypeName(tensor.dtype)), tensor.shape, tensor.bytes});
    }
    const float value = 0;
    tensors.push_back({name, "F32", {1}, std::as_bytes(std::span(&value, 1))});
    const fs::path changed = path.string() + ".changed";
    ASSERT_TRUE(WriteSafetensors(changed.string(), tensors).ok());
    fs::rename(changed, path);
  }

  testing::TempFolder folder_;
  int links_ = 0;
};

TEST_F(DistillationTest, AnOrdinaryCheckpointIsNone) {
  for (const char* const golden : {"ti2v-5b/diffusers", "t2v-a14b/original", "i2v-a14b/diffusers",
                                   "wan2.1-t2v-1.3b/original"}) {
    EXPECT_EQ(FewStepOf(Link(golden)), std::nullopt) << golden;
  }
}

TEST_F(DistillationTest, FastWanByTheClassOfItsPipeline) {
  const fs::path path = Link("ti2v-5b/diffusers");
  ChangeJson(path / "model_index.json", {{"_class_name", "WanDMDPipeline"}});
  const std::optional<FewStepConfig> few_step = FewStepOf(path);
  ASSERT_TRUE(few_step.has_value());
  EXPECT_THAT(few_step->timesteps, ElementsAre(1000, 280, 120));
  EXPECT_EQ(few_step->shift, 8);
  EXPECT_EQ(few_step->solver, "lcm");
  EXPECT_EQ(few_step->rounding, TimestepRounding::kWhole);
  EXPECT_EQ(few_step->recognised, "FastWan, by the pipeline class WanDMDPipeline");

  // FastVideo does not read this entry, so a copy may lack it.
  ChangeJson(path / "model_index.json", {{"expand_timesteps", nullptr}});
  EXPECT_EQ((*Checkpoint::Open(path.string()))->family(), FamilyId::kTi2v5b);
  const fs::path small = Link("wan2.1-t2v-1.3b/diffusers");
  ChangeJson(small / "model_index.json", {{"_class_name", "WanDMDPipeline"}});
  EXPECT_EQ((*Checkpoint::Open(small.string()))->family(), FamilyId::kWan21T2v1b);
  EXPECT_TRUE(FewStepOf(small).has_value());
}

TEST_F(DistillationTest, LightX2VByTheNamesOfItsFiles) {
  const fs::path path = Link("t2v-a14b/original");
  const auto rename = [&](const std::string& folder, const std::string& name) {
    fs::rename(path / folder / kWeights, path / folder / name);
  };
  rename("high_noise_model", "wan2.2_t2v_A14b_high_noise_lightx2v_4step_1217.safetensors");
  EXPECT_THAT(
      ErrorOf(path, absl::StatusCode::kDataLoss),
      AllOf(HasSubstr("low_noise_model/diffusion_pytorch_model.safetensors: belongs to an ordinary "
                      "model, but the other expert is LightX2V's distilled one"),
            HasSubstr("must be of one kind")));
  rename("low_noise_model", "distill_model.safetensors");
  const std::optional<FewStepConfig> few_step = FewStepOf(path);
  ASSERT_TRUE(few_step.has_value());
  EXPECT_THAT(few_step->timesteps, ElementsAre(1000, 750, 500, 250));
  EXPECT_EQ(few_step->shift, 5);
  EXPECT_EQ(few_step->boundary_step_index, 2);
  EXPECT_EQ(few_step->solver, "euler");
  EXPECT_THAT(few_step->recognised, HasSubstr("LightX2V, by the file name "));

  // With two candidates no one can know which file is meant.
  testing::WriteFile(path / "low_noise_model" / "b_lightx2v_4step.safetensors", "");
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kNotFound),
              HasSubstr("low_noise_model/diffusion_pytorch_model.safetensors: does not exist"));
}

TEST_F(DistillationTest, LightX2VByTheFileThatALinkLeadsTo) {
  const fs::path path = Link("wan2.1-t2v-1.3b/original");
  const fs::path weights = folder_ / "Wan2.1_t2v_14b_LightX2V_4step.safetensors";
  fs::copy_file(path / kWeights, weights);
  fs::remove(path / kWeights);
  fs::create_symlink(weights, path / kWeights);
  const std::optional<FewStepConfig> few_step = FewStepOf(path);
  ASSERT_TRUE(few_step.has_value());
  EXPECT_EQ(few_step->boundary_step_index, std::nullopt);
}

TEST_F(DistillationTest, RcmByItsLinearPatchEmbedding) {
  const fs::path path = Link("wan2.1-t2v-1.3b/original");
  const auto base = Checkpoint::Open(path.string()).value();
  std::vector<TensorSpec> specs = ExpectedTensors(base->transformer_config());
  for (TensorSpec& spec : specs) {
    if (spec.name == "patch_embedding.weight") spec.shape = {64, 64};
    spec.name.insert(0, "net.");
  }
  fs::remove(path / kWeights);
  testing::WriteFile(path / "rCM_Wan2.1_T2V_1.3B_480p.pt", testing::StateDict(specs).Bytes());
  const auto checkpoint = Checkpoint::Open(path.string());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->transformer_config(), base->transformer_config());
  EXPECT_THAT((*checkpoint)->transformer().Find("patch_embedding.weight")->shape,
              ElementsAre(64, 16, 1, 2, 2));
  const std::optional<FewStepConfig>& few_step = (*checkpoint)->few_step();
  ASSERT_TRUE(few_step.has_value());
  EXPECT_THAT(few_step->timesteps,
              ElementsAre(DoubleNear(987.654, 1e-3), DoubleNear(933.781, 1e-3),
                          DoubleNear(852.896, 1e-3), DoubleNear(608.979, 1e-3)));
  EXPECT_EQ(few_step->shift, 1);
  EXPECT_EQ(few_step->solver, "lcm");
  EXPECT_EQ(few_step->rounding, TimestepRounding::kBFloat16);
  EXPECT_EQ(few_step->recognised, "rCM, by its linear patch embedding");

  // As a part of another folder the file is the same.
  const std::string part =
      absl::StrCat(Link("wan2.1-t2v-1.3b/original").string(),
                   ",transformer=", (path / "rCM_Wan2.1_T2V_1.3B_480p.pt").string());
  const auto named = Checkpoint::Open(part);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ((*named)->transformer_config(), base->transformer_config());
  EXPECT_EQ((*named)->few_step(), few_step);
}

// A file of ComfyUI's, in the folder of the model.
TEST_F(DistillationTest, APrefixOfAllTensorsIsNoMatterInAFolder) {
  const fs::path path = Link("wan2.1-t2v-1.3b/original");
  const TensorFile file = ReadSafetensors((path / kWeights).string()).value();
  std::vector<SafetensorsTensor> tensors;
  for (const StoredTensor& tensor : file.tensors) {
    tensors.push_back({absl::StrCat("model.diffusion_model.", tensor.name),
                       std::string(DTypeName(tensor.dtype)), tensor.shape, tensor.bytes});
  }
  ASSERT_TRUE(WriteSafetensors((path / "wan_lightx2v_4step.safetensors").string(), tensors).ok());
  fs::remove(path / kWeights);
  const std::optional<FewStepConfig> few_step = FewStepOf(path);
  ASSERT_TRUE(few_step.has_value());
  EXPECT_EQ(few_step->recognised, "LightX2V, by the file name wan_lightx2v_4step.safetensors");
}

TEST_F(DistillationTest, AFileOfTheScheduleComesFirst) {
  const fs::path path = Link("wan2.1-t2v-1.3b/original");
  fs::rename(path / kWeights, path / "distill_model.safetensors");
  testing::WriteFile(path / "few_step.json",
                     R"({"denoising_step_list": [1000, 500], "sample_shift": 3, "solver": "lcm",
                         "timestep_rounding": "whole"})");
  EXPECT_EQ(FewStepOf(path), (FewStepConfig{.timesteps = {1000, 500},
                                            .shift = 3,
                                            .solver = "lcm",
                                            .rounding = TimestepRounding::kWhole}));
  testing::WriteFile(path / "few_step.json",
                     R"({"denoising_step_list": [1000, 500], "sample_shift": 3, "solver": "unipc",
                         "timestep_rounding": "half"})");
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("\"solver\" is unipc, expected euler or lcm"),
                    HasSubstr("\"timestep_rounding\" is half, expected none, whole or bf16")));
}

TEST_F(DistillationTest, WhatComputesSomethingElseIsNamedAlone) {
  const struct {
    const char* golden;
    const char* file;
    const char* tensor;
    const char* says;
  } cases[] = {
      {"wan2.1-t2v-1.3b/original", "", "img_emb.proj.0.weight",
       "is an image-to-video model of Wan2.1, whose image embeddings"},
      {"wan2.1-t2v-1.3b/diffusers", "transformer/", "condition_embedder.image_embedder.norm1.bias",
       "is an image-to-video model of Wan2.1, whose image embeddings"},
      {"wan2.1-t2v-1.3b/diffusers", "transformer/", "blocks.0.to_gate_compress.bias",
       "was trained for FastVideo's sparse attention (VSA)"},
      {"wan2.1-t2v-1.3b/original", "", "vace_blocks.0.self_attn.q.bias",
       "is a VACE model of Wan, which takes control videos"},
      {"t2v-a14b/original", "high_noise_model/",
       "blocks.0.self_attn.attn_op.local_attn.proj_l.bias",
       "was trained for TurboDiffusion's sparse-linear attention (SLA)"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.tensor);
    const fs::path path = Link(c.golden);
    AddTensor(path / (std::string(c.file) + kWeights), c.tensor);
    EXPECT_THAT(ErrorOf(path, absl::StatusCode::kUnimplemented),
                AllOf(HasSubstr(c.says), Not(HasSubstr("not a part of this model"))));
  }
  // Without its weights the configuration of such a model says what it is.
  const fs::path path = Link("wan2.1-t2v-1.3b/original");
  ChangeJson(path / "config.json", {{"model_type", "i2v"}, {"in_dim", 36}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kUnimplemented),
              HasSubstr("model_type \"i2v\" with 1 expert(s)"));
}

}  // namespace
}  // namespace wan
