#include "engine/checkpoint/put_together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/formats/safetensors.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kBase = WAN_CHECKPOINT_DIR "/t2v-a14b/original";
const std::string kPacked = WAN_CHECKPOINT_DIR "/../packed";
const std::string kTokenizer = kBase + "/google/umt5-xxl/spiece.model";

std::unique_ptr<Checkpoint> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

std::string ErrorOf(const std::string& path) {
  const absl::Status status = Checkpoint::Open(path).status();
  EXPECT_FALSE(status.ok()) << path;
  return std::string(status.message());
}

std::vector<std::byte> ReadAll(const WeightSource& source, const TensorInfo& info) {
  std::vector<std::byte> bytes(info.bytes);
  EXPECT_TRUE(source.Read(info)->Read(0, bytes).ok()) << info.name;
  return bytes;
}

// All tensors are those of `base`, but for those in the file of expected values, which are widened.
// Returns how many are.
size_t ExpectWeights(const WeightSource& source, const WeightSource& base,
                     const std::string& expected_path = "") {
  std::map<std::string, StoredTensor> expected;
  TensorFile file;
  if (!expected_path.empty()) {
    file = ReadSafetensors(expected_path).value();
    for (const StoredTensor& tensor : file.tensors) expected[tensor.name] = tensor;
  }
  EXPECT_EQ(source.Tensors().size(), base.Tensors().size());
  for (const TensorInfo& info : source.Tensors()) {
    const std::vector<std::byte> bytes = ReadAll(source, info);
    const auto widened = expected.find(info.name);
    if (widened == expected.end()) {
      const TensorInfo* const same = base.Find(info.name);
      EXPECT_NE(same, nullptr) << info.name;
      if (same == nullptr) continue;
      EXPECT_EQ(info.shape, same->shape) << info.name;
      EXPECT_EQ(bytes, ReadAll(base, *same)) << info.name;
      continue;
    }
    EXPECT_EQ(info.dtype, DType::kBFloat16) << info.name;
    EXPECT_EQ(info.shape, widened->second.shape) << info.name;
    EXPECT_TRUE(std::ranges::equal(bytes, widened->second.bytes)) << info.name;
  }
  return expected.size();
}

// ComfyUI's files hold the same numbers under other names, so the model is the same.
TEST(PutTogetherTest, ComfyFilesAreTheSameModel) {
  const std::string comfy = kPacked + "/comfy/";
  const auto base = Open(kBase);
  const auto files =
      Open("path=" + kBase + ",transformer.high=" + comfy +
           "high.safetensors,transformer.low=" + comfy + "low.safetensors,text_encoder=" + comfy +
           "umt5.safetensors,vae=" + comfy + "vae.safetensors");
  ASSERT_TRUE(base != nullptr && files != nullptr);
  EXPECT_EQ(files->layout(), Layout::kFiles);
  EXPECT_EQ(LayoutName(files->layout()), "files");
  EXPECT_EQ(files->family(), FamilyId::kT2vA14b);
  EXPECT_EQ(files->expert_boundary(), base->expert_boundary());
  for (int expert = 0; expert < 2; ++expert) {
    EXPECT_EQ(files->transformer_config(expert), base->transformer_config(expert));
    ExpectWeights(files->transformer(expert), base->transformer(expert));
  }
  EXPECT_THAT(files->transformer(0).Tensors()[0].file, HasSubstr("comfy/high"));
  EXPECT_EQ(files->text_encoder_config(), base->text_encoder_config());
  EXPECT_EQ(files->vae_config(), base->vae_config());
  ExpectWeights(files->text_encoder(), base->text_encoder());
  ExpectWeights(files->vae(), base->vae());
  EXPECT_EQ(files->tokenizer_path(), kTokenizer);
}

TEST(PutTogetherTest, DiffusersComponentsAreTakenAlone) {
  const std::string diffusers = WAN_CHECKPOINT_DIR "/t2v-a14b/diffusers/";
  const auto base = Open(kBase);
  const auto files =
      Open(kBase + ",transformer.high=" + diffusers + "transformer,text_encoder=" + diffusers +
           "text_encoder,vae=" + diffusers + "vae,tokenizer=" + diffusers + "tokenizer");
  ASSERT_TRUE(base != nullptr && files != nullptr);
  EXPECT_EQ(files->transformer_config(0), base->transformer_config(0));
  ExpectWeights(files->transformer(0), base->transformer(0));
  ExpectWeights(files->text_encoder(), base->text_encoder());
  ExpectWeights(files->vae(), base->vae());
  EXPECT_EQ(files->tokenizer_path(), diffusers + "tokenizer/spiece.model");
}

struct Form {
  const char* part;
  const char* file;
  const char* stored_as;
};

class FormTest : public ::testing::TestWithParam<Form> {};

// Every other form has the values of its formula, and the rest of the model is the folder's.
TEST_P(FormTest, HasTheValuesOfItsFormula) {
  const auto [part, file, stored_as] = GetParam();
  const std::string path = kPacked + "/" + file;
  const auto base = Open(kBase);
  const auto model = Open(std::string("path=") + kBase + "," + part + "=" + path);
  ASSERT_TRUE(base != nullptr && model != nullptr);
  const std::string named = part;
  const auto component = [&](const Checkpoint& of) -> const WeightSource& {
    return named == "text_encoder"      ? of.text_encoder()
           : named == "transformer.low" ? of.transformer(1)
                                        : of.transformer(0);
  };
  const WeightSource& source = component(*model);
  EXPECT_GT(ExpectWeights(source, component(*base), path + ".expected.safetensors"), 10u);
  size_t widened = 0;
  for (const TensorInfo& info : source.Tensors()) widened += info.stored_as == stored_as ? 1 : 0;
  EXPECT_GT(widened, 10u);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, FormTest,
    ::testing::Values(Form{"transformer.high", "fp8/high.safetensors", "F8_E4M3 scaled"},
                      Form{"transformer.low", "fp8/low.safetensors", "F8_E4M3 scaled"},
                      Form{"text_encoder", "fp8/umt5.safetensors", "F8_E4M3 scaled"},
                      Form{"transformer.high", "int8/high.safetensors", "I8 scaled"},
                      Form{"transformer.high", "gguf/high.gguf", "Q8_0"},
                      Form{"text_encoder", "gguf/umt5.gguf", "Q8_0"}),
    [](const auto& info) {
      std::string name = info.param.file;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

// No file of this model says how many heads or experts there are.
TEST(PutTogetherTest, FilesAloneAreAModel) {
  const std::string wide = kPacked + "/wide/";
  const auto model = Open("transformer.high=" + wide + "high.gguf,transformer.low=" + wide +
                          "low.gguf,text_encoder=" + kPacked + "/gguf/umt5.gguf,vae=" + kBase +
                          "/Wan2.1_VAE.pth,tokenizer=" + kBase + "/google/umt5-xxl");
  ASSERT_TRUE(model != nullptr);
  EXPECT_EQ(model->family(), FamilyId::kT2vA14b);
  EXPECT_EQ(model->expert_boundary(), 0.875);
  EXPECT_EQ(model->folder(), "");
  const TransformerConfig& config = model->transformer_config(1);
  EXPECT_EQ(config.num_heads, 2);
  EXPECT_EQ(config.num_layers, 1);
  EXPECT_EQ(config.ffn_dim, 512);
  EXPECT_EQ(config.text_len, 512);
  EXPECT_EQ(config.model_type, "t2v");
  EXPECT_EQ(model->tokenizer_path(), kTokenizer);
  ASSERT_EQ(model->files().size(), 5u);
  EXPECT_EQ(model->files()[0].name, "text_encoder/umt5.gguf");
  EXPECT_EQ(model->files()[1].name, "tokenizer/spiece.model");
  EXPECT_EQ(model->files()[2].name, "transformer/high.gguf");
  // The reference has the first row of each matrix.
  for (int expert = 0; expert < 2; ++expert) {
    const WeightSource& source = model->transformer(expert);
    const TensorFile rows =
        ReadSafetensors(wide + (expert == 0 ? "high" : "low") + ".gguf.expected.safetensors")
            .value();
    ASSERT_EQ(rows.tensors.size(), 16u);
    for (const StoredTensor& row : rows.tensors) {
      const TensorInfo* const info = source.Find(row.name);
      ASSERT_NE(info, nullptr) << row.name;
      std::vector<std::byte> bytes(row.bytes.size());
      ASSERT_TRUE(source.Read(*info)->Read(0, bytes).ok());
      EXPECT_TRUE(std::ranges::equal(bytes, row.bytes)) << row.name << " " << info->stored_as;
    }
  }
}

TEST(PutTogetherTest, WhatIsMissingIsNamed) {
  const std::string high = "transformer.high=" + kPacked + "/wide/high.gguf";
  EXPECT_THAT(ErrorOf(high), StartsWith("transformer.low, text_encoder, vae, tokenizer: not named; "
                                        "name the files, for example transformer.low=FILE"));
  EXPECT_THAT(ErrorOf(high + ",transformer=/a"), StartsWith("transformer: is named beside"));
  EXPECT_THAT(ErrorOf(kBase + ",transformer=/a"), HasSubstr("the folder has two experts"));
  EXPECT_THAT(ErrorOf(WAN_CHECKPOINT_DIR "/ti2v-5b/original," + high),
              HasSubstr("the folder has one expert; name transformer"));
  EXPECT_THAT(ErrorOf("vaes=/a"), StartsWith("vaes: is not a part of a model"));
}

TEST(PutTogetherTest, APartInTheWrongPlaceIsNamed) {
  const std::string vae = kBase + "/Wan2.1_VAE.pth";
  EXPECT_THAT(ErrorOf(kBase + ",transformer.low=" + vae),
              AllOf(StartsWith(vae), HasSubstr("is a VAE; must be a transformer")));
  EXPECT_THAT(ErrorOf(kBase + ",vae=" + kPacked + "/gguf/umt5.gguf"),
              HasSubstr("is a text encoder; must be a VAE"));
  EXPECT_THAT(ErrorOf(kBase + ",vae=" WAN_CHECKPOINT_DIR "/ti2v-5b/original/Wan2.2_VAE.pth"),
              HasSubstr("which no supported model with 2 experts and a 2.2 VAE does"));
}

// A transformer of a width that is no multiple of a head's needs the folder's number of heads.
TEST(PutTogetherTest, AnUnusualWidthNeedsAConfig) {
  EXPECT_THAT(ErrorOf("transformer=" + kPacked + "/comfy/high.safetensors,text_encoder=" + kPacked +
                      "/gguf/umt5.gguf,vae=" + kBase + "/Wan2.1_VAE.pth,tokenizer=" + kTokenizer),
              HasSubstr("has the width 64, which is not a multiple of the 128 of a head"));
}

// Copies a golden tiny decoder into a folder of links to the golden model's files.
std::string FolderWith(const std::string& name, const std::string& base, const std::string& tiny) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(base)) {
    fs::create_symlink(entry.path(), folder / entry.path().filename());
  }
  fs::copy_file(WAN_GOLDEN_DIR "/tiny/" + tiny, folder / tiny);
  return folder.string();
}

TEST(PutTogetherTest, ATinyDecoderIsNamedOrLiesInTheFolder) {
  const std::string file = WAN_GOLDEN_DIR "/tiny/taew2_1.safetensors";
  EXPECT_FALSE(Open(kBase)->vae_config().tiny_decoder.has_value());
  const auto named = Open("path=" + kBase + ",tiny_decoder=" + file);
  ASSERT_NE(named, nullptr);
  const std::optional<TinyDecoderConfig>& config = named->vae_config().tiny_decoder;
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->z_dim, 16);
  EXPECT_THAT(config->widths, ::testing::ElementsAre(4, 4, 2, 2));
  EXPECT_FALSE(config->denormalises);
  // The model's files, which receipts list, are one more.
  EXPECT_EQ(named->files().size(), Open(kBase)->files().size() + 1);
  const TensorInfo* const tensor = named->vae().Find("tiny_decoder.22.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->file, file);
  EXPECT_EQ(ReadAll(named->vae(), *tensor).size(), tensor->bytes);

  const std::string other = WAN_CHECKPOINT_DIR "/ti2v-5b/original";
  const auto found = Open(FolderWith("with_tiny", other, "taew2_2.safetensors"));
  ASSERT_NE(found, nullptr);
  ASSERT_TRUE(found->vae_config().tiny_decoder.has_value());
  EXPECT_EQ(found->vae_config().tiny_decoder->patch_size, 2);
  // The tiny decoder of another autoencoder is not one of this model.
  EXPECT_FALSE(Open(FolderWith("with_other", other, "taew2_1.safetensors"))
                   ->vae_config()
                   .tiny_decoder.has_value());
}

TEST(PutTogetherTest, AFileThatIsNoTinyDecoderOfTheModelIsRefused) {
  const std::string tiny = WAN_GOLDEN_DIR "/tiny/taew2_2.safetensors";
  EXPECT_THAT(ErrorOf("path=" + kBase + ",tiny_decoder=" + tiny),
              AllOf(StartsWith(tiny), HasSubstr("is a tiny decoder that makes 16x16 pixels of 48 "
                                                "channels; must make 8x8 of 16")));
  EXPECT_THAT(ErrorOf("path=" + kBase + ",tiny_decoder=" + kBase + "/Wan2.1_VAE.pth"),
              HasSubstr("is a VAE; must be a tiny decoder"));
  EXPECT_THAT(ErrorOf("path=synthetic:ti2v-5b,tiny_decoder=" + tiny),
              HasSubstr("is named beside a synthetic model"));
  EXPECT_THAT(ErrorOf("path=" + kBase + ",vae=" + tiny),
              HasSubstr("is a tiny decoder; must be a VAE"));
}

// The model of a damaged or foreign file loads, and says why it has no tiny decoder.
TEST(PutTogetherTest, ATinyDecoderThatOnlyLiesInTheFolderMayBeBad) {
  namespace fs = std::filesystem;
  const std::string base = WAN_CHECKPOINT_DIR "/ti2v-5b/original";
  const std::string file = FolderWith("bad_tiny", base, "taew2_2.safetensors");
  const std::string path = file + "/taew2_2.safetensors";
  const size_t files = Open(base)->files().size();
  const auto check = [&](const std::string& what) {
    const auto model = Open(file);
    ASSERT_NE(model, nullptr);
    EXPECT_FALSE(model->vae_config().tiny_decoder.has_value());
    EXPECT_EQ(model->vae().Find("tiny_decoder.22.weight"), nullptr);
    EXPECT_EQ(model->files().size(), files);
    EXPECT_THAT(std::string(model->tiny_decoder_error().message()),
                AllOf(StartsWith(path), HasSubstr(what)));
    EXPECT_THAT(ErrorOf("path=" + base + ",tiny_decoder=" + path), HasSubstr(what)) << "named";
  };
  fs::resize_file(path, fs::file_size(path) / 2);
  check("");
  fs::resize_file(path, 0);
  check("");
  fs::remove(path);
  fs::copy_file(WAN_GOLDEN_DIR "/tiny/taew2_1.safetensors", path);
  check("is a tiny decoder that makes 8x8 pixels of 16");
  fs::remove(path);
  fs::create_symlink("/nowhere/blob", path);
  check("");
  EXPECT_TRUE(Open(base)->tiny_decoder_error().ok());
}

TEST(PutTogetherTest, AMissingTensorIsNamedOnce) {
  const std::string path = ::testing::TempDir() + "/one_tensor.safetensors";
  testing::WriteFile(
      path,
      testing::SafetensorsBytes(
          R"({"blocks.0.self_attn.q.weight":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
          "aaaa"));
  const CheckpointParts parts = ReadComponentParts(path);
  std::set<std::string> messages;
  for (const absl::Status& problem : AllProblems(parts)) {
    EXPECT_TRUE(messages.emplace(problem.message()).second) << problem;
  }
  EXPECT_TRUE(messages.contains(path + ": tensor patch_embedding.weight is missing"));
}

TEST(PutTogetherTest, AFileAloneIsReadAsAComponent) {
  const CheckpointParts tiny = ReadComponentParts(WAN_GOLDEN_DIR "/tiny/taew2_2.safetensors");
  EXPECT_TRUE(AllProblems(tiny).empty()) << AllProblems(tiny).front();
  EXPECT_EQ(tiny.tiny_decoder.config->z_dim, 48);
  const CheckpointParts parts = ReadComponentParts(kPacked + "/wide/low.gguf");
  EXPECT_TRUE(AllProblems(parts).empty()) << AllProblems(parts).front();
  ASSERT_EQ(parts.transformers.size(), 1u);
  EXPECT_EQ(parts.transformers.front().config->num_heads, 2);
}

}  // namespace
}  // namespace wan
