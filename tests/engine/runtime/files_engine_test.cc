// Models that are put together from files, and files in other forms than upstream's, in the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "tests/engine/runtime/residency_fixture.h"

namespace wan {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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

  // The bytes of the lossless video.
  std::string VideoOf(Engine& engine, const GenerationRequest& request) {
    const auto latents = Latents(engine, request);
    EXPECT_TRUE(latents.ok()) << latents.status();
    std::ifstream video(folder_ / "video.mkv", std::ios::binary);
    return {std::istreambuf_iterator<char>(video), {}};
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

// With eight_bit_weights, codes of 8 bits are computed with as they are; without, they are widened
// to bf16 and rounded again, with scales for rows in place of the file's one scale.
TEST_F(FilesEngineTest, CodesMayBeKeptInEightBits) {
  const std::string path = kBase + ",transformer.low=" + kPacked + "/fp8/low.safetensors";
  EngineOptions options;
  options.eight_bit_weights.transformers = true;
  const auto engine = MakeEngineWith(options);
  const std::string kept = LatentsOf(*engine, path, Quality::kHigh);
  EXPECT_EQ(engine->Models().at(0).components.at(2).dtype, "e4m3");
  const std::string again = LatentsOf(*MakeEngine({}), path, Quality::kHigh);
  EXPECT_EQ(again.size(), kept.size());
  EXPECT_FALSE(again == kept);
  // Weights that were dropped are read again with the same codes.
  options.residency = {{ModelComponent::kTransformer, ResidencyPolicy::kDisk},
                       {ModelComponent::kTransformer2, ResidencyPolicy::kDisk}};
  EXPECT_TRUE(LatentsOf(*MakeEngineWith(options), path, Quality::kHigh) == kept);
}

TEST_F(FilesEngineTest, ATinyDecoderMakesTheVideo) {
  const auto engine = MakeEngine({});
  Load(*engine, "m", kBase + ",tiny_decoder=" WAN_GOLDEN_DIR "/tiny/taew2_1.safetensors");
  EXPECT_TRUE(engine->Models().at(0).has_tiny_decoder);
  GenerationRequest request = SmallRequest("m");
  const auto plan = engine->Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->request.decoder, Decoder::kFull);
  request.decoder = Decoder::kTiny;
  const std::string tiny = VideoOf(*engine, request);
  request.decoder = Decoder::kFull;
  const std::string full = VideoOf(*engine, request);
  EXPECT_FALSE(tiny.empty());
  EXPECT_FALSE(tiny == full);
}

TEST_F(FilesEngineTest, AModelLoadsBesideABadTinyDecoder) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "beside_bad_tiny";
  fs::remove_all(folder);
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(kBase)) {
    fs::create_symlink(entry.path(), folder / entry.path().filename());
  }
  const std::string tiny = (folder / "taew2_1.safetensors").string();
  std::ofstream(tiny) << "<html>not found</html>";
  const auto engine = MakeEngine({});
  Load(*engine, "m", folder.string());
  const ModelDescription model = engine->Models().at(0);
  EXPECT_FALSE(model.has_tiny_decoder);
  EXPECT_THAT(std::string(model.tiny_decoder_error.message()), StartsWith(tiny));
  GenerationRequest request = SmallRequest("m");
  EXPECT_TRUE(engine->Plan(request).ok());
  request.decoder = Decoder::kTiny;
  const absl::Status refused = engine->Plan(request).status();
  ASSERT_EQ(FieldViolationsOf(refused).size(), 1u) << refused;
  EXPECT_EQ(FieldViolationsOf(refused).front().field, "decoder");
  EXPECT_THAT(FieldViolationsOf(refused).front().description, HasSubstr(tiny));
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
