#include "engine/checkpoint/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/synthetic_models.h"
#include "engine/checkpoint/upstream_constants.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch_archive.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char kOriginal[] = WAN_CHECKPOINT_DIR "/ti2v-5b/original";
constexpr const char kDiffusers[] = WAN_CHECKPOINT_DIR "/ti2v-5b/diffusers";

std::vector<std::string> Texts(const std::vector<absl::Status>& problems) {
  std::vector<std::string> texts;
  for (const absl::Status& problem : problems) texts.emplace_back(problem.message());
  return texts;
}

class ConfigReaderTest : public ::testing::Test {
 protected:
  // A copy of the config with `changes` merged into it (null removes a field).
  std::string Changed(const std::string& path, const nlohmann::json& changes) {
    nlohmann::json config = nlohmann::json::parse(testing::ReadFile(path));
    config.merge_patch(changes);
    const std::string copy = (folder_ / "config.json").string();
    testing::WriteFile(copy, config.dump());
    return copy;
  }

  testing::TempFolder folder_;
  std::vector<absl::Status> problems_;
};

TEST_F(ConfigReaderTest, BothLayoutsGiveTheGoldenDimensions) {
  const SyntheticModel tiny = FindSyntheticModel("ti2v-tiny").value();
  const std::string config = std::string(kOriginal) + "/config.json";
  const std::string index =
      std::string(kOriginal) + "/diffusion_pytorch_model.safetensors.index.json";
  EXPECT_EQ(ReadOriginalTransformer(config, ReadShardedSafetensors(index), index, problems_),
            tiny.transformer);
  const std::string text_path = std::string(kOriginal) + "/models_t5_umt5-xxl-enc-bf16.pth";
  const TensorFiles text{.files = {ReadTorchArchive(text_path).value()}, .problems = {}};
  EXPECT_EQ(ReadOriginalTextEncoder(text, text_path, problems_), tiny.text_encoder);
  const std::string vae_path = std::string(kOriginal) + "/Wan2.2_VAE.pth";
  const TensorFiles vae{.files = {ReadTorchArchive(vae_path).value()}, .problems = {}};
  EXPECT_EQ(ReadOriginalVae(VaeKind::kWan22, vae, vae_path, problems_), tiny.vae);

  const std::string diffusers = kDiffusers;
  auto transformer = ReadDiffusersTransformer(diffusers + "/transformer/config.json", problems_);
  ASSERT_TRUE(transformer.has_value());
  transformer->model_type = "ti2v";
  EXPECT_EQ(transformer, tiny.transformer);
  EXPECT_EQ(ReadDiffusersTextEncoder(diffusers + "/text_encoder/config.json", problems_),
            tiny.text_encoder);
  EXPECT_EQ(ReadDiffusersVae(diffusers + "/vae/config.json", problems_), tiny.vae);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(ConfigReaderTest, UpstreamsStatisticsOfBothVaesAreThoseOfDiffusers) {
  VaeConfig vae21 = UpstreamVae(VaeKind::kWan21);
  vae21.z_dim = 16;
  vae21.base_dim = vae21.decoder_base_dim = 8;
  SetStrides(vae21);
  EXPECT_EQ(vae21.stride_spatial, 8);
  EXPECT_EQ(vae21.stride_temporal, 4);
  EXPECT_EQ(ReadDiffusersVae(WAN_CHECKPOINT_DIR "/t2v-a14b/diffusers/vae/config.json", problems_),
            vae21);
  EXPECT_THAT(problems_, IsEmpty());
}

// Fields that published configs leave out.
TEST_F(ConfigReaderTest, DiffusersDefaultsHold) {
  const std::string vae = WAN_CHECKPOINT_DIR "/t2v-a14b/diffusers/vae/config.json";
  const auto whole = ReadDiffusersVae(vae, problems_);
  ASSERT_TRUE(whole.has_value());
  const nlohmann::json without = {
      {"is_residual", nullptr},          {"patch_size", nullptr},
      {"decoder_base_dim", nullptr},     {"in_channels", nullptr},
      {"scale_factor_spatial", nullptr}, {"scale_factor_temporal", nullptr}};
  EXPECT_EQ(ReadDiffusersVae(Changed(vae, without), problems_), whole);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(ConfigReaderTest, DiffusersSaysWhichNormsThereAre) {
  const auto config =
      ReadDiffusersTransformer(Changed(std::string(kDiffusers) + "/transformer/config.json",
                                       {{"qk_norm", nullptr}, {"cross_attn_norm", false}}),
                               problems_);
  ASSERT_TRUE(config.has_value());
  EXPECT_FALSE(config->qk_norm);
  EXPECT_FALSE(config->cross_attn_norm);
}

TEST_F(ConfigReaderTest, EveryProblemOfAConfigIsReported) {
  const std::string path =
      Changed(std::string(kDiffusers) + "/transformer/config.json", {{"num_layers", -1},
                                                                     {"ffn_dim", "160"},
                                                                     {"patch_size", {1, 2}},
                                                                     {"text_dim", nullptr},
                                                                     {"qk_norm", "layer_norm"},
                                                                     {"image_dim", 1280}});
  EXPECT_EQ(ReadDiffusersTransformer(path, problems_), std::nullopt);
  const std::vector<std::string> texts = Texts(problems_);
  EXPECT_THAT(texts, SizeIs(6));
  EXPECT_THAT(texts, Contains(path + ": \"num_layers\" is -1, expected an integer from 1 to 1024"));
  EXPECT_THAT(texts, Contains(HasSubstr("\"ffn_dim\"")));
  EXPECT_THAT(texts, Contains(HasSubstr("\"patch_size\" has 2 entries")));
  EXPECT_THAT(texts, Contains(HasSubstr("\"text_dim\" is missing")));
  EXPECT_THAT(texts, Contains(HasSubstr("\"qk_norm\" is layer_norm")));
  EXPECT_THAT(
      texts,
      Contains(HasSubstr("\"image_dim\" is set, as only Wan2.1's image-to-video models have it")));
}

TEST_F(ConfigReaderTest, OtherArchitecturesAreRefused) {
  const std::string diffusers = kDiffusers;
  const auto refused = [&](const std::optional<auto>& config, const std::string& what) {
    EXPECT_FALSE(config.has_value());
    ASSERT_THAT(problems_, SizeIs(1)) << what;
    EXPECT_EQ(problems_[0].code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(problems_[0].message()), HasSubstr(what));
    problems_.clear();
  };
  refused(ReadDiffusersTransformer(Changed(diffusers + "/transformer/config.json",
                                           {{"_class_name", "WanVACETransformer3DModel"}}),
                                   problems_),
          "WanVACETransformer3DModel");
  refused(ReadDiffusersTextEncoder(
              Changed(diffusers + "/text_encoder/config.json", {{"model_type", "t5"}}), problems_),
          "type t5");
  refused(ReadDiffusersTextEncoder(
              Changed(diffusers + "/text_encoder/config.json", {{"feed_forward_proj", "relu"}}),
              problems_),
          "feed_forward_proj");
  refused(ReadDiffusersTextEncoder(Changed(diffusers + "/text_encoder/config.json",
                                           {{"relative_attention_max_distance", 64}}),
                                   problems_),
          "relative_attention_max_distance");
  refused(ReadDiffusersVae(Changed(diffusers + "/vae/config.json", {{"attn_scales", {0.5}}}),
                           problems_),
          "attn_scales");
  refused(ReadDiffusersVae(Changed(diffusers + "/vae/config.json", {{"scale_factor_spatial", 8}}),
                           problems_),
          "\"scale_factor_spatial\" is 8, expected 16");
  refused(
      ReadOriginalTransformer(
          Changed(std::string(kOriginal) + "/config.json", {{"_class_name", "WanAnimateModel"}}),
          {.files = {}, .problems = {absl::UnknownError("cut")}}, "files", problems_),
      "WanAnimateModel");
}

TEST_F(ConfigReaderTest, MissingTensorsAreNamedUnlessAFileIsUnreadable) {
  TensorFiles files;
  EXPECT_EQ(ReadOriginalVae(VaeKind::kWan22, files, "vae.pth", problems_), std::nullopt);
  EXPECT_THAT(Texts(problems_), Contains("vae.pth: tensor conv2.weight is missing"));
  problems_.clear();
  files.problems.push_back(absl::DataLossError("vae.pth: cut"));
  EXPECT_EQ(ReadOriginalVae(VaeKind::kWan22, files, "vae.pth", problems_), std::nullopt);
  EXPECT_THAT(problems_, IsEmpty());
  const TensorFiles flat{
      .files = {{.path = "t5.pth",
                 .mapping = nullptr,
                 .tensors = {{.name = "token_embedding.weight", .shape = {5}, .bytes = {}}}}},
      .problems = {}};
  EXPECT_EQ(ReadOriginalTextEncoder(flat, "t5.pth", problems_), std::nullopt);
  EXPECT_THAT(Texts(problems_),
              Contains("t5.pth: tensor token_embedding.weight has shape [5], expected 2 axes"));
}

template <typename Config, typename Change>
std::vector<std::string> After(Config config, Change change) {
  EXPECT_THAT(Contradictions(config), IsEmpty());
  change(config);
  return Contradictions(config);
}

TEST(ConfigLimitsTest, DimensionsMustMakeSense) {
  const SyntheticModel tiny = FindSyntheticModel("ti2v-tiny").value();
  using T = TransformerConfig;
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.num_heads = 3; }),
              Contains("dim 64 is not divisible into 3 heads of even width"));
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.num_heads = 64; }), SizeIs(1));
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.num_heads = 0; }),
              Contains("num_heads is 0, expected 1 to 1048576"));
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.freq_dim = 255; }),
              Contains("freq_dim 255 is odd"));
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.eps = 0; }), SizeIs(1));
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.patch_size[1] = 17; }), SizeIs(1));
  EXPECT_THAT(After(tiny.transformer, [](T& c) { c.num_layers = int64_t{1} << 40; }), SizeIs(1));
  using E = TextEncoderConfig;
  EXPECT_THAT(After(tiny.text_encoder, [](E& c) { c.head_dim = 0; }), SizeIs(1));
  EXPECT_THAT(After(tiny.text_encoder, [](E& c) { c.num_buckets = 30; }), SizeIs(1));
  EXPECT_THAT(After(tiny.text_encoder, [](E& c) { c.vocab_size = int64_t{1} << 30; }), SizeIs(1));
  using V = VaeConfig;
  EXPECT_THAT(After(tiny.vae, [](V& c) { c.latents_mean.pop_back(); }), SizeIs(1));
  EXPECT_THAT(After(tiny.vae, [](V& c) { c.latents_std[3] = 0; }), SizeIs(1));
  EXPECT_THAT(After(tiny.vae, [](V& c) { c.temporal_downsample.pop_back(); }), SizeIs(1));
  EXPECT_THAT(After(tiny.vae, [](V& c) { c.dim_mult.assign(9, 1); }), SizeIs(1));
  EXPECT_THAT(After(tiny.vae, [](V& c) { c.dim_mult.clear(); }), SizeIs(1));
  EXPECT_THAT(After(tiny.vae, [](V& c) { c.kind = VaeKind::kWan21; }), SizeIs(1));
}

}  // namespace
}  // namespace wan
