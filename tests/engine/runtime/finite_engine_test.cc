// Jobs whose values become NaN or infinite: every one fails with its reason and names where it
// happened, and the engine goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/lora_fixture.h"
#include "tests/engine/runtime/residency_fixture.h"
#include "tests/fakes/fake_savepoint_keeper.h"
#include "tests/support/nan_tensor.h"

namespace wan {
namespace {

using fakes::FakeSavepointKeeper;
using support::MakeFirstValueNan;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Policy = ResidencyPolicy;

constexpr char kVae[] = "vae/diffusion_pytorch_model.safetensors";

// A weight that is NaN, and what a job says of it.
struct Damage {
  std::string file;  // of the diffusers layout
  std::string tensor;
  bool image = false;  // whether the job must have one
  std::string says;
};

std::vector<Damage> Damages() {
  return {
      {"text_encoder/model.safetensors", "encoder.final_layer_norm.weight", false,
       "the embeddings of the prompt (stage T5_Encoding) are not finite"},
      {"transformer/diffusion_pytorch_model-00002-of-00002.safetensors", "blocks.1.ffn.net.2.bias",
       false, "the latents of step 1 of 3 (stage Step_0_Inference) are not finite"},
      {kVae, "encoder.conv_in.bias", true,
       "the latents of the image (stage VAE_Encoding) are not finite"},
      {kVae, "decoder.conv_in.bias", false,
       "the frames that the autoencoder decoded from latent frame 1 (stage VAE_Decoding) are not "
       "finite"},
  };
}

class Previews final : public GenerationObserver {
 public:
  void OnPreview(const Preview&) override { ++count; }
  void OnOmission(const Omission&) override { ++omissions; }
  int count = 0;
  int omissions = 0;
};

class FiniteEngineTest : public ResidencyTest {
 protected:
  // The path of a copy of a golden checkpoint whose tensor has a NaN.
  std::string Damaged(const std::string& file, const std::string& tensor,
                      const std::string& model = "ti2v-5b") {
    const std::filesystem::path copy = folder_ / "damaged";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(std::filesystem::path(WAN_CHECKPOINT_DIR) / model / "diffusers", copy,
                          std::filesystem::copy_options::recursive);
    MakeFirstValueNan(copy / file, tensor);
    return copy.string();
  }

  static void LoadFrom(Engine& engine, const std::string& name, const std::string& path,
                       std::vector<LoraSource> loras = {}) {
    Recorder recorder(SystemClock(), engine.Monitor(), {});
    const absl::Status status = engine.LoadModel({name, path, std::move(loras)}, recorder);
    ASSERT_TRUE(status.ok()) << status;
  }

  absl::Status Generate(Engine& engine, const GenerationPlan& plan,
                        SavepointKeeper* keeper = nullptr) {
    Recorder recorder(SystemClock(), engine.Monitor(), {});
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"},
                                             {OutputKind::kLosslessMkv, folder_ / "video.mkv"}};
    return engine.Generate(plan, outputs, recorder, observer_, {}, keeper);
  }

  static GenerationPlan PlanOf(Engine& engine, const GenerationRequest& request) {
    absl::StatusOr<GenerationPlan> plan = engine.Plan(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.value_or(GenerationPlan());
  }

  static void ExpectNotFinite(const absl::Status& status, const std::string& says) {
    EXPECT_TRUE(IsNotFinite(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }

  Previews observer_;
};

TEST_F(FiniteEngineTest, ANanWeightEndsTheJobInItsStageAndHarmsNoOther) {
  for (const Damage& damage : Damages()) {
    for (const Policy policy : {Policy::kResident, Policy::kStream, Policy::kCpu}) {
      SCOPED_TRACE(damage.tensor + " " + std::string(ResidencyPolicyName(policy)));
      const auto engine = MakeEngine(Everywhere(policy));
      LoadFrom(*engine, "good", CheckpointPath("ti2v-5b"));
      const auto before = Latents(*engine, SmallRequest("good"));
      ASSERT_TRUE(before.ok()) << before.status();
      LoadFrom(*engine, "bad", Damaged(damage.file, damage.tensor));
      GenerationRequest request = SmallRequest("bad");
      if (damage.image) request.image = GoldenImage();
      ExpectNotFinite(Generate(*engine, PlanOf(*engine, request)), damage.says);
      const auto after = Latents(*engine, SmallRequest("good"));
      ASSERT_TRUE(after.ok()) << after.status();
      EXPECT_TRUE(*after == *before);
    }
  }
}

TEST_F(FiniteEngineTest, SeveralDevicesEndTogether) {
  for (const Damage& damage : Damages()) {
    for (const size_t ranks : {2, 3}) {
      SCOPED_TRACE(damage.tensor + " on " + std::to_string(ranks));
      const auto engine = MakeEngine({}, /*limit=*/0, ranks);
      LoadFrom(*engine, "good", CheckpointPath("ti2v-5b"));
      LoadFrom(*engine, "bad", Damaged(damage.file, damage.tensor));
      GenerationRequest request = SmallRequest("bad");
      if (damage.image) request.image = GoldenImage();
      ExpectNotFinite(Generate(*engine, PlanOf(*engine, request)), damage.says);
      EXPECT_TRUE(Latents(*engine, SmallRequest("good")).ok());
    }
  }
}

TEST_F(FiniteEngineTest, TheExpertIsNamedAndOnlyFiniteStepsAreKept) {
  const auto engine = MakeEngine({});
  LoadFrom(*engine, "m",
           Damaged("transformer_2/diffusion_pytorch_model.safetensors", "blocks.1.ffn.net.2.bias",
                   "t2v-a14b"));
  GenerationRequest request = SmallRequest("m");
  request.steps = 2;
  request.shift = 1;  // so that each expert has a step
  FakeSavepointKeeper keeper;
  keeper.every_step = true;
  keeper.when_stopped = true;
  ExpectNotFinite(Generate(*engine, PlanOf(*engine, request), &keeper),
                  "the latents of step 2 of 2 (stage Step_1_Inference, expert low) are not finite");
  EXPECT_THAT(keeper.steps, ElementsAre(1));
}

TEST_F(FiniteEngineTest, EveryWayOfDecodingLooks) {
  const auto engine = MakeEngine({});
  LoadFrom(*engine, "m", Damaged(kVae, "decoder.conv_in.bias"));
  for (const VaePrecision precision :
       {VaePrecision::kFp32, VaePrecision::kBf16, VaePrecision::kFp16}) {
    for (const TileGrid tiles : {TileGrid{1, 1}, TileGrid{1, 2}}) {
      SCOPED_TRACE(std::string(NameOf(precision)) + " in " + std::to_string(tiles.columns));
      GenerationRequest request = SmallRequest("m");
      request.width = 256;  // wide enough for two tiles, which overlap
      request.steps = 1;
      request.vae_precision = precision;
      GenerationPlan plan = PlanOf(*engine, request);
      plan.decode_tiles = tiles;
      ExpectNotFinite(Generate(*engine, plan), "(stage VAE_Decoding) are not finite");
    }
  }
}

TEST_F(FiniteEngineTest, APreviewEndsAJobWhoseVideoWouldBeNoBetter) {
  const auto engine = MakeEngine({});
  LoadFrom(*engine, "m", Damaged(kVae, "decoder.conv_in.bias"));
  GenerationRequest request = SmallRequest("m");
  request.preview_interval = 2;
  ExpectNotFinite(Generate(*engine, PlanOf(*engine, request)), "for the preview after step 2, ");
  EXPECT_EQ(observer_.count, 0);
  EXPECT_EQ(observer_.omissions, 0);
}

TEST_F(FiniteEngineTest, AWarmUpFindsWhatAJobWouldFind) {
  const VideoShape shape{64, 32, 5};
  for (const Damage& damage : Damages()) {
    if (damage.image) continue;  // this model's warm-up has no image
    SCOPED_TRACE(damage.tensor);
    const auto engine = MakeEngine({});
    LoadFrom(*engine, "m", Damaged(damage.file, damage.tensor));
    EXPECT_TRUE(IsNotFinite(engine->Warmup("m", {}))) << "the engine's own small shape";
    EXPECT_TRUE(IsNotFinite(engine->Warmup("m", std::span(&shape, 1))));
    EXPECT_THAT(engine->Models()[0].warm_shapes, IsEmpty());
  }
  const auto engine = MakeEngine({});
  LoadFrom(*engine, "m", CheckpointPath("ti2v-5b"));
  EXPECT_TRUE(engine->Warmup("m", {}).ok());
}

// Servers before this check kept such savepoints.
TEST_F(FiniteEngineTest, ASavepointThatIsNotFiniteIsRefusedAndTheJobBeginsAtItsStart) {
  const auto engine = MakeEngine({});
  LoadFrom(*engine, "m", CheckpointPath("ti2v-5b"));
  const GenerationPlan plan = PlanOf(*engine, SmallRequest("m"));
  FakeSavepointKeeper whole;
  whole.every_step = true;
  ASSERT_TRUE(Generate(*engine, plan, &whole).ok());
  ASSERT_THAT(whole.steps, ElementsAre(1, 2, 3));
  const std::string last = whole.kept->bytes;
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    FakeSavepointKeeper damaged;
    damaged.kept = whole.kept;
    std::string& bytes = damaged.kept->bytes;
    std::memcpy(bytes.data() + bytes.size() - sizeof(value), &value, sizeof(value));
    damaged.before_decoding = true;
    ASSERT_TRUE(Generate(*engine, plan, &damaged).ok());
    EXPECT_THAT(damaged.refusals, ElementsAre(HasSubstr("has values that are not finite")));
    EXPECT_TRUE(damaged.kept->bytes == last) << "computed from the beginning";
  }
}

// Each factor is finite, and fp32 has no room for their product.
TEST_F(FiniteEngineTest, ALoraWhoseProductOverflowsIsNamedAndLeavesTheBaseAsItWas) {
  TestLora lora = TestLora::Random(GoldenCheckpoint("ti2v-5b/original").transformer_config(),
                                   /*rank=*/4, /*seed=*/1);
  for (auto& [module, pair] : lora.pairs) {
    pair.down.mul_(1e25);
    pair.up.mul_(1e25);
  }
  const std::string file = lora.Write(folder_.string(), LoraStyle::kComfy);
  for (const Policy policy : {Policy::kResident, Policy::kStream}) {
    SCOPED_TRACE(ResidencyPolicyName(policy));
    const auto engine = MakeEngine(Everywhere(policy));
    LoadFrom(*engine, "m", CheckpointPath("ti2v-5b"), {{"loud", std::nullopt, file}});
    EXPECT_TRUE(engine->Warmup("m", {}).ok()) << "no request has asked for the LoRA";
    const auto before = Latents(*engine, SmallRequest("m"));
    ASSERT_TRUE(before.ok()) << before.status();
    GenerationRequest request = SmallRequest("m");
    request.loras = {{"loud", 0.5}};
    FakeSavepointKeeper keeper;
    keeper.every_step = true;
    const absl::Status status = Generate(*engine, PlanOf(*engine, request), &keeper);
    EXPECT_TRUE(IsNotFinite(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("stage Step_0_Inference"),
                      HasSubstr("the job's LoRAs are loud with scale 0.5: try it without them")));
    EXPECT_THAT(keeper.steps, IsEmpty());
    const auto after = Latents(*engine, SmallRequest("m"));
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_TRUE(*after == *before);
  }
}

}  // namespace
}  // namespace wan
