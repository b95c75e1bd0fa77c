// Models that are put together from files, and files in other forms than upstream's, in the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/engine/runtime/residency_fixture.h"

namespace wan {
namespace {

using ::testing::HasSubstr;

const std::string kBase = WAN_CHECKPOINT_DIR "/t2v-a14b/original";
const std::string kPacked = WAN_CHECKPOINT_DIR "/../packed";

class FilesEngineTest : public ResidencyTest {
 protected:
  std::string LatentsOf(Engine& engine, const std::string& path,
                        std::optional<Quality> quality = std::nullopt) {
    Load(engine, "m", path);
    GenerationRequest request = SmallRequest("m");
    request.shift = 1;  // so that both experts have steps
    request.quality = quality;
    const auto latents = Latents(engine, request);
    EXPECT_TRUE(latents.ok()) << latents.status();
    return latents.ok() ? *latents : "";
  }

  static std::string StoredAs(Engine& engine, ModelComponent component) {
    const std::vector<ModelDescription> models = engine.Models();
    for (const ComponentDescription& description : models.at(0).components) {
      if (description.component == component) return description.stored_as;
    }
    return "no such component";
  }
};

TEST_F(FilesEngineTest, FilesGiveTheSameBitsAsTheFolder) {
  const auto engine = MakeEngine({});
  const std::string folder = LatentsOf(*engine, kBase);
  const std::string comfy = kPacked + "/comfy/";
  const std::string files = LatentsOf(
      *engine, kBase + ",transformer.high=" + comfy + "high.safetensors,transformer.low=" + comfy +
                   "low.safetensors,text_encoder=" + comfy + "umt5.safetensors,vae=" + comfy +
                   "vae.safetensors");
  EXPECT_TRUE(files == folder);
  EXPECT_EQ(engine->Models().at(0).layout, "files");
  EXPECT_EQ(StoredAs(*engine, ModelComponent::kTransformer), "");
}

TEST_F(FilesEngineTest, WidenedWeightsAreComputedWith) {
  const auto engine = MakeEngine({});
  const std::string folder = LatentsOf(*engine, kBase);
  const std::string blocks =
      LatentsOf(*engine, kBase + ",transformer.high=" + kPacked +
                             "/gguf/high.gguf,transformer.low=" + kPacked +
                             "/fp8/low.safetensors,text_encoder=" + kPacked + "/gguf/umt5.gguf");
  EXPECT_EQ(StoredAs(*engine, ModelComponent::kTransformer), "Q8_0");
  EXPECT_EQ(StoredAs(*engine, ModelComponent::kTransformer2), "F8_E4M3 scaled");
  EXPECT_EQ(StoredAs(*engine, ModelComponent::kTextEncoder), "Q8_0");
  EXPECT_EQ(StoredAs(*engine, ModelComponent::kVae), "");
  EXPECT_EQ(blocks.size(), folder.size());
  EXPECT_FALSE(blocks == folder);
}

TEST_F(FilesEngineTest, FilesAloneMakeAVideo) {
  const auto engine = MakeEngine({});
  Recorder recorder(SystemClock(), engine->Monitor(), {&samples_});
  const std::string wide = kPacked + "/wide/";
  const absl::Status loaded = engine->LoadModel(
      {"m", "transformer.high=" + wide + "high.gguf,transformer.low=" + wide +
                "low.gguf,text_encoder=" + kPacked + "/fp8/umt5.safetensors,vae=" + kPacked +
                "/comfy/vae.safetensors,tokenizer=" + kBase + "/google/umt5-xxl/spiece.model"},
      recorder);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_THAT(StoredAs(*engine, ModelComponent::kTransformer), HasSubstr("Q4_K"));
  EXPECT_TRUE(Latents(*engine, SmallRequest("m")).ok());
}

// With eight_bit_weights, codes of 8 bits are rounded to 8 bits again.
TEST_F(FilesEngineTest, CodesMayBeKeptInEightBits) {
  EngineOptions options;
  options.eight_bit_weights.transformers = true;
  const auto engine = MakeEngineWith(options);
  const std::string kept = LatentsOf(
      *engine, kBase + ",transformer.high=" + kPacked + "/fp8/high.safetensors", Quality::kHigh);
  EXPECT_EQ(engine->Models().at(0).components.at(1).dtype, "e4m3");
  const auto widened = MakeEngine({});
  EXPECT_TRUE(LatentsOf(*widened, kBase + ",transformer.high=" + kPacked + "/fp8/high.safetensors",
                        Quality::kHigh) == kept);
}

// Weights that were dropped are read, and widened, again.
TEST_F(FilesEngineTest, WeightsAreWidenedAgain) {
  const std::string path = kBase + ",transformer.high=" + kPacked + "/gguf/high.gguf";
  const auto resident = MakeEngine({});
  const auto dropped = MakeEngine({{ModelComponent::kTransformer, ResidencyPolicy::kDisk},
                                   {ModelComponent::kTransformer2, ResidencyPolicy::kDisk}});
  const std::string first = LatentsOf(*resident, path);
  EXPECT_TRUE(LatentsOf(*dropped, path) == first);
}

}  // namespace
}  // namespace wan
