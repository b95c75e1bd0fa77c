#include "engine/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/synthetic_models.h"
#include "tests/engine/checkpoint/state_dict.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Golden(const std::string& name) { return std::string(WAN_CHECKPOINT_DIR "/") + name; }

std::unique_ptr<Checkpoint> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

void ExpectEqualWeights(const WeightSource& a, const WeightSource& b) {
  ASSERT_EQ(a.Tensors().size(), b.Tensors().size());
  ASSERT_FALSE(a.Tensors().empty());
  for (size_t i = 0; i < a.Tensors().size(); ++i) {
    const TensorInfo& left = a.Tensors()[i];
    const TensorInfo& right = b.Tensors()[i];
    ASSERT_EQ(left.name, right.name);
    EXPECT_EQ(left.dtype, right.dtype) << left.name;
    EXPECT_EQ(left.shape, right.shape) << left.name;
    const auto left_bytes = a.Read(left);
    const auto right_bytes = b.Read(right);
    ASSERT_TRUE(left_bytes.ok() && right_bytes.ok()) << left.name;
    EXPECT_EQ(left_bytes->bytes.size(), left.bytes);
    EXPECT_TRUE(std::ranges::equal(left_bytes->bytes, right_bytes->bytes)) << left.name;
  }
}

class GoldenCheckpointTest : public ::testing::TestWithParam<const char*> {};

// The same model was written by upstream's classes and by diffusers': names, shapes, dtypes, values
// and dimensions must come out equal.
TEST_P(GoldenCheckpointTest, BothLayoutsAreTheSameModel) {
  const auto original = Open(Golden(GetParam()) + "/original");
  const auto diffusers = Open(Golden(GetParam()) + "/diffusers");
  ASSERT_TRUE(original != nullptr && diffusers != nullptr);
  EXPECT_EQ(original->layout(), Layout::kOriginal);
  EXPECT_EQ(diffusers->layout(), Layout::kDiffusers);
  EXPECT_EQ(NameOf(original->family()), GetParam());
  EXPECT_EQ(NameOf(diffusers->family()), GetParam());
  EXPECT_EQ(original->expert_boundary(), diffusers->expert_boundary());
  ASSERT_EQ(original->num_experts(), diffusers->num_experts());
  for (int expert = 0; expert < original->num_experts(); ++expert) {
    EXPECT_EQ(original->transformer_config(expert), diffusers->transformer_config(expert));
    ExpectEqualWeights(original->transformer(expert), diffusers->transformer(expert));
  }
  EXPECT_EQ(original->text_encoder_config(), diffusers->text_encoder_config());
  EXPECT_EQ(original->vae_config(), diffusers->vae_config());
  ExpectEqualWeights(original->text_encoder(), diffusers->text_encoder());
  ExpectEqualWeights(original->vae(), diffusers->vae());
  EXPECT_EQ(testing::ReadFile(original->tokenizer_path()),
            testing::ReadFile(diffusers->tokenizer_path()));
}

TEST_P(GoldenCheckpointTest, DimensionsAreThoseOfTheCases) {
  const nlohmann::json cases =
      nlohmann::json::parse(testing::ReadFile(WAN_GOLDEN_DIR "/cases.json"));
  const nlohmann::json& golden = cases.at("checkpoints").at(GetParam());
  const auto checkpoint = Open(Golden(GetParam()) + "/original");
  ASSERT_TRUE(checkpoint != nullptr);
  const TransformerConfig& transformer = checkpoint->transformer_config();
  EXPECT_EQ(transformer.dim, golden["dit"]["dim"]);
  EXPECT_EQ(transformer.num_heads, golden["dit"]["heads"]);
  EXPECT_EQ(transformer.ffn_dim, golden["dit"]["ffn"]);
  EXPECT_EQ(transformer.num_layers, golden["dit"]["layers"]);
  EXPECT_EQ(transformer.in_channels, golden["dit"]["in_channels"]);
  EXPECT_EQ(transformer.out_channels, golden["dit"]["out_channels"]);
  const TextEncoderConfig& text = checkpoint->text_encoder_config();
  EXPECT_EQ(text.dim, golden["umt5"]["dim"]);
  EXPECT_EQ(text.ffn_dim, golden["umt5"]["ffn"]);
  EXPECT_EQ(text.num_heads, golden["umt5"]["heads"]);
  EXPECT_EQ(text.head_dim, golden["umt5"]["d_kv"]);
  EXPECT_EQ(text.num_layers, golden["umt5"]["layers"]);
  EXPECT_EQ(text.vocab_size, golden["vocabulary_rows"]);
  EXPECT_EQ(checkpoint->vae_config().base_dim, golden["vae"]["base"]);
  EXPECT_EQ(NameOf(checkpoint->vae_config().kind), golden["vae"]["kind"].get<std::string>());
  const nlohmann::json& boundary = golden["boundary_ratio"];
  EXPECT_EQ(checkpoint->expert_boundary(),
            boundary.is_null() ? std::nullopt : std::optional<double>(boundary));
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenCheckpointTest,
                         ::testing::Values("ti2v-5b", "t2v-a14b", "i2v-a14b", "wan2.1-t2v-1.3b"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

// High noise comes first, whatever the folders' order.
TEST(CheckpointTest, ExpertsAreNotSwapped) {
  const auto checkpoint = Open(Golden("t2v-a14b/original"));
  ASSERT_TRUE(checkpoint != nullptr);
  EXPECT_THAT(checkpoint->transformer(0).Tensors()[0].file, HasSubstr("high_noise_model"));
  EXPECT_THAT(checkpoint->transformer(1).Tensors()[0].file, HasSubstr("low_noise_model"));
}

TEST(CheckpointTest, ItNamesTheFilesThatItWasReadFrom) {
  const auto names = [](const std::string& layout) {
    std::vector<std::string> list;
    const auto checkpoint = Open(Golden("t2v-a14b/" + layout));
    if (checkpoint == nullptr) return list;
    for (const ModelFile& file : checkpoint->files()) {
      list.push_back(file.name);
      EXPECT_EQ(file.path, Golden("t2v-a14b/" + layout + "/" + file.name));
      EXPECT_EQ(file.version.size_bytes, fs::file_size(file.path));
      EXPECT_EQ(file.version, *FileVersion::Of(file.path));
      const bool of_vae = file.name.starts_with("vae/") && file.name.ends_with(".safetensors");
      EXPECT_EQ(file.use,
                of_vae || file.name.ends_with("VAE.pth") ? FileUse::kVae : FileUse::kEveryJob)
          << file.name;
    }
    return list;
  };
  // Every file of the folders is read, but for those that belong to other tokenizers.
  const auto is_ours = [](const fs::path& file) {
    return !file.parent_path().string().ends_with("umt5-xxl") &&
           file.parent_path().filename() != "tokenizer";
  };
  for (const std::string layout : {"original", "diffusers"}) {
    std::vector<std::string> all;
    const fs::path folder = Golden("t2v-a14b/" + layout);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().lexically_relative(folder).generic_string();
      const bool read = is_ours(entry.path()) || entry.path().filename() == "spiece.model";
      if (entry.is_regular_file() && read) all.push_back(name);
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(names(layout), all) << layout;
  }
}

TEST(CheckpointTest, SyntheticModelsAreReadFromNoFile) {
  const auto checkpoint = Open("synthetic:ti2v-tiny");
  ASSERT_TRUE(checkpoint != nullptr);
  EXPECT_TRUE(checkpoint->files().empty());
}

TEST(CheckpointTest, WeightsOutliveTheCheckpoint) {
  auto checkpoint = Open(Golden("ti2v-5b/original"));
  ASSERT_TRUE(checkpoint != nullptr);
  const WeightSource& vae = checkpoint->vae();
  const TensorBytes bytes = vae.Read(*vae.Find("conv1.bias")).value();
  const std::vector<std::byte> before(bytes.bytes.begin(), bytes.bytes.end());
  checkpoint.reset();
  EXPECT_TRUE(std::ranges::equal(before, bytes.bytes));
}

TEST(CheckpointTest, SyntheticModelsHaveTheTensorsOfRealOnes) {
  const auto tiny = Open("synthetic:ti2v-tiny");
  const auto golden = Open(Golden("ti2v-5b/original"));
  ASSERT_TRUE(tiny != nullptr && golden != nullptr);
  EXPECT_EQ(tiny->layout(), Layout::kSynthetic);
  EXPECT_EQ(tiny->family(), FamilyId::kTi2v5b);
  EXPECT_EQ(tiny->tokenizer_path(), "");
  EXPECT_EQ(tiny->transformer_config(), golden->transformer_config());
  EXPECT_EQ(tiny->text_encoder_config(), golden->text_encoder_config());
  EXPECT_EQ(tiny->vae_config(), golden->vae_config());
  const auto expect_same_tensors = [](const WeightSource& synthetic, const WeightSource& real) {
    EXPECT_TRUE(synthetic.IsSynthetic());
    ASSERT_EQ(synthetic.Tensors().size(), real.Tensors().size());
    for (size_t i = 0; i < real.Tensors().size(); ++i) {
      EXPECT_EQ(synthetic.Tensors()[i].name, real.Tensors()[i].name);
      EXPECT_EQ(synthetic.Tensors()[i].shape, real.Tensors()[i].shape);
      EXPECT_EQ(synthetic.Tensors()[i].bytes, real.Tensors()[i].bytes);
    }
  };
  expect_same_tensors(tiny->transformer(), golden->transformer());
  expect_same_tensors(tiny->text_encoder(), golden->text_encoder());
  expect_same_tensors(tiny->vae(), golden->vae());

  const auto full = Open("synthetic:ti2v-5b");
  ASSERT_TRUE(full != nullptr);
  EXPECT_EQ(full->transformer().Tensors()[0].dtype, DType::kBFloat16);
  EXPECT_EQ(full->text_encoder().Tensors()[0].dtype, DType::kBFloat16);
  EXPECT_EQ(full->vae().Tensors()[0].dtype, DType::kFloat32);
  EXPECT_EQ(Checkpoint::Open("synthetic:ti2v-6b").status().message(),
            "synthetic:ti2v-6b: this synthetic model does not exist; the names are ti2v-5b, "
            "t2v-a14b, i2v-a14b, wan2.1-t2v-1.3b, wan2.1-t2v-14b, ti2v-tiny");
}

TEST(CheckpointTest, SyntheticExpertsHaveNumbersOfTheirOwn) {
  for (const char* name : {"t2v-a14b", "i2v-a14b"}) {
    const auto model = Open(std::string("synthetic:") + name);
    ASSERT_TRUE(model != nullptr);
    EXPECT_EQ(NameOf(model->family()), name);
    ASSERT_EQ(model->num_experts(), 2);
    EXPECT_EQ(model->expert_boundary(), Open(Golden(name) + "/original")->expert_boundary());
    EXPECT_NE(model->transformer(0).SyntheticSeed(), model->transformer(1).SyntheticSeed());
    // 14.3 billion parameters, as published.
    uint64_t bytes = 0;
    for (const TensorInfo& tensor : model->transformer(1).Tensors()) bytes += tensor.bytes;
    EXPECT_NEAR(static_cast<double>(bytes) / 2, 14.29e9, 0.01e9);
    EXPECT_EQ(model->vae_config().base_dim, 96);
    EXPECT_EQ(model->vae_config().stride_spatial, 8);
  }
}

// A folder of links to a golden checkpoint, in which a test breaks something.
class BrokenCheckpointTest : public ::testing::Test {
 protected:
  std::string Link(const std::string& golden) {
    const std::string path = (folder_ / std::to_string(links_++)).string();
    testing::LinkFolder(Golden(golden), path);
    return path;
  }

  static void ChangeJson(const fs::path& path, const nlohmann::json& changes) {
    nlohmann::json config = nlohmann::json::parse(testing::ReadFile(path));
    config.merge_patch(changes);
    testing::ReplaceFile(path, config.dump());
  }

  static std::string ErrorOf(const std::string& path, absl::StatusCode code) {
    const absl::Status status = Checkpoint::Open(path).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  testing::TempFolder folder_;
  int links_ = 0;
};

TEST_F(BrokenCheckpointTest, FoldersThatAreNoCheckpoint) {
  EXPECT_THAT(ErrorOf(folder_.string() + "/gone", absl::StatusCode::kNotFound),
              HasSubstr("/gone: does not exist"));
  EXPECT_THAT(ErrorOf(folder_.string(), absl::StatusCode::kNotFound),
              HasSubstr("neither upstream's layout"));
  EXPECT_THAT(
      ErrorOf(Golden("ti2v-5b/original/config.json"), absl::StatusCode::kFailedPrecondition),
      AllOf(HasSubstr("config.json: is a file; must be a folder"),
            HasSubstr("give its folder " + Golden("ti2v-5b/original"))));
}

// A folder as Hugging Face's cache has it, with links into a folder that was not copied.
TEST_F(BrokenCheckpointTest, FoldersOfACache) {
  const fs::path snapshot = folder_ / "snapshots/abc";
  fs::create_directories(snapshot);
  EXPECT_THAT(ErrorOf(folder_.string(), absl::StatusCode::kNotFound),
              HasSubstr("is not a checkpoint"));
  fs::create_symlink("../../blobs/0123", snapshot / "model_index.json");
  EXPECT_THAT(ErrorOf(folder_.string(), absl::StatusCode::kNotFound),
              HasSubstr("it is a folder of Hugging Face's cache: give " + snapshot.string()));
  EXPECT_THAT(ErrorOf(snapshot.string(), absl::StatusCode::kNotFound),
              AllOf(HasSubstr("model_index.json: is a link to " +
                              (folder_ / "blobs/0123").string() + ", which does not exist"),
                    HasSubstr("blobs is needed beside snapshots")));
}

// An optional file that is a link to nothing was meant to be there.
TEST_F(BrokenCheckpointTest, OptionalFilesThatAreLinksToNothing) {
  for (const char* const name : {"few_step.json", "generation_defaults.json"}) {
    const std::string copy = Link("ti2v-5b/original");
    fs::create_symlink("gone.json", fs::path(copy) / name);
    EXPECT_THAT(ErrorOf(copy, absl::StatusCode::kNotFound),
                AllOf(HasSubstr(name), HasSubstr("gone.json, which does not exist")));
  }
}

// In place of any file: what other tools left there, by its name.
TEST_F(BrokenCheckpointTest, ForeignFilesAreNamed) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  struct Foreign {
    const char* layout;
    const char* file;
    std::string bytes;
    const char* says;
  };
  const Foreign files[] = {
      {"ti2v-5b/original", "config.json", pointer, "is a Git LFS pointer"},
      {"ti2v-5b/original", "models_t5_umt5-xxl-enc-bf16.pth", pointer, "is a Git LFS pointer"},
      {"ti2v-5b/original", "Wan2.2_VAE.pth", "\x80\x02}q", "is a pickle of Python"},
      {"ti2v-5b/original", "Wan2.2_VAE.pth", "", "is empty (0 bytes)"},
      {"ti2v-5b/diffusers", "vae/diffusion_pytorch_model.safetensors", pointer,
       "is a Git LFS pointer, not the file: run git lfs pull"},
      {"ti2v-5b/diffusers", "vae/diffusion_pytorch_model.safetensors",
       "<!DOCTYPE html><html>Sign in", "is an HTML page"},
      {"ti2v-5b/diffusers", "vae/diffusion_pytorch_model.safetensors",
       std::string("GGUF\3\0\0\0", 8), "ends at byte 8, within its header: it was cut"},
      {"ti2v-5b/diffusers", "vae/config.json", "<html>", "is an HTML page"},
      {"ti2v-5b/diffusers", "vae/config.json", "", "is empty (0 bytes)"},
  };
  for (const Foreign& c : files) {
    SCOPED_TRACE(c.file);
    const std::string copy = Link(c.layout);
    testing::ReplaceFile(fs::path(copy) / c.file, c.bytes);
    EXPECT_THAT(ErrorOf(copy, absl::StatusCode::kDataLoss),
                HasSubstr(std::string(c.file) + ": " + c.says));
  }
}

// Each file of each layout is needed, and the message says which one is not there.
TEST_F(BrokenCheckpointTest, EveryMissingFileIsNamed) {
  for (const char* layout : {"ti2v-5b/original", "ti2v-5b/diffusers", "t2v-a14b/original"}) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(Golden(layout))) {
      const std::string name = entry.path().filename().string();
      const bool is_needed = entry.is_regular_file() && !name.starts_with("tokenizer") &&
                             !name.starts_with("special_tokens") && !name.starts_with("scheduler");
      if (is_needed) files.push_back(fs::relative(entry.path(), Golden(layout)));
    }
    EXPECT_GE(files.size(), 7u);
    for (const fs::path& file : files) {
      const std::string path = Link(layout);
      fs::remove(fs::path(path) / file);
      const absl::Status status = Checkpoint::Open(path).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << file;
      // Without an index the whole file is looked for; two files tell the layout.
      std::string expected = file.string();
      if (const size_t index = expected.find(".index.json"); index != std::string::npos) {
        expected.resize(index);
      }
      if (expected == "model_index.json" || expected == "config.json") {
        expected = "neither upstream's layout";
      }
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path), HasSubstr(expected)));
    }
  }
}

TEST_F(BrokenCheckpointTest, ModelsOfOtherKinds) {
  std::string path = Link("ti2v-5b/original");
  ChangeJson(fs::path(path) / "config.json", {{"model_type", "flf2v"}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kUnimplemented),
              HasSubstr("config.json: model_type \"flf2v\" with 1 expert(s) is not one of the "
                        "supported ti2v, t2v and i2v"));
  path = Link("ti2v-5b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"expand_timesteps", false}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              HasSubstr("is a 2.2 VAE, which wan2.1-t2v-1.3b does not have"));
  path = Link("t2v-a14b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"expand_timesteps", true}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kUnimplemented), HasSubstr("both transformer_2"));
  path = Link("ti2v-5b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"_class_name", "WanVACEPipeline"}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kUnimplemented), HasSubstr("WanVACEPipeline"));
}

TEST_F(BrokenCheckpointTest, ComponentsOfDifferentModels) {
  std::string path = Link("ti2v-5b/diffusers");
  fs::remove_all(fs::path(path) / "vae");
  testing::LinkFolder(Golden("t2v-a14b/diffusers/vae"), fs::path(path) / "vae");
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("/vae/"), HasSubstr("is a 2.1 VAE, which ti2v-5b does not have"),
                    HasSubstr("gives 48 channels, but the VAE has 16")));
  path = Link("t2v-a14b/original");
  fs::remove_all(fs::path(path) / "low_noise_model");
  testing::LinkFolder(Golden("i2v-a14b/original/low_noise_model"),
                      fs::path(path) / "low_noise_model");
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("low_noise_model"), HasSubstr("takes 36 channels, expected 16"),
                    HasSubstr("differs in its dimensions from the other expert")));
}

TEST_F(BrokenCheckpointTest, TextEncodersOfAnotherWidth) {
  const std::string path = Link("ti2v-5b/original");
  TextEncoderConfig config = FindSyntheticModel("ti2v-tiny").value().text_encoder;
  config.dim = 32;
  const std::string file = path + "/models_t5_umt5-xxl-enc-bf16.pth";
  testing::ReplaceFile(file, testing::StateDict(ExpectedTensors(config)).Bytes());
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              HasSubstr("takes text of width 64, but the text encoder gives 32"));
}

TEST_F(BrokenCheckpointTest, ConfigsThatContradictTheTensors) {
  std::string path = Link("ti2v-5b/original");
  ChangeJson(fs::path(path) / "config.json", {{"ffn_dim", 176}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("00001-of-00002.safetensors: tensor blocks.0.ffn.0.weight has shape "
                              "[160, 64], expected [176, 64]"),
                    HasSubstr("and 6 more problems")));
  path = Link("ti2v-5b/original");
  ChangeJson(fs::path(path) / "config.json", {{"num_layers", 4}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kNotFound),
              HasSubstr("index.json: tensor blocks.3.modulation [1, 6, 64] is missing"));
  path = Link("ti2v-5b/diffusers");
  ChangeJson(fs::path(path) / "transformer" / "config.json", {{"num_layers", 2}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              HasSubstr("tensor blocks.2.attn1.norm_k.weight is not a part of this model"));
}

TEST_F(BrokenCheckpointTest, TheBoundaryIsTheCheckpointsOrUpstreams) {
  std::string path = Link("i2v-a14b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"boundary_ratio", 0.75}});
  EXPECT_EQ(Checkpoint::Open(path).value()->expert_boundary(), 0.75);
  path = Link("i2v-a14b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"boundary_ratio", nullptr}});
  EXPECT_EQ(Checkpoint::Open(path).value()->expert_boundary(), 0.9);
  path = Link("i2v-a14b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"boundary_ratio", 90}});
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kDataLoss),
              HasSubstr("model_index.json: \"boundary_ratio\" is 90, expected between 0 and 1"));
  path = Link("ti2v-5b/diffusers");
  ChangeJson(fs::path(path) / "model_index.json", {{"boundary_ratio", 0.9}});
  EXPECT_EQ(Checkpoint::Open(path).value()->expert_boundary(), std::nullopt);
}

// All problems are collected, those of every component.
TEST_F(BrokenCheckpointTest, AllProblemsAreCollected) {
  const std::string path = Link("ti2v-5b/diffusers");
  fs::remove(fs::path(path) / "tokenizer" / "spiece.model");
  fs::remove(fs::path(path) / "vae" / "diffusion_pytorch_model.safetensors");
  testing::ReplaceFile(fs::path(path) / "text_encoder" / "model.safetensors", "short");
  ChangeJson(fs::path(path) / "transformer" / "config.json", {{"dim", 1}, {"eps", "x"}});
  const CheckpointParts parts = ReadCheckpointParts(path);
  EXPECT_EQ(AllProblems(parts).size(), 4u);
  EXPECT_EQ(parts.problems.size(), 1u);
  EXPECT_EQ(parts.transformers[0].problems.size(), 1u);
  EXPECT_EQ(parts.text_encoder.problems.size(), 1u);
  EXPECT_EQ(parts.vae.problems.size(), 1u);
  EXPECT_THAT(ErrorOf(path, absl::StatusCode::kNotFound), HasSubstr("; and 1 more problems"));
}

}  // namespace
}  // namespace wan
