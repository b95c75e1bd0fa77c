// Jobs that begin with latents of their own, or only decode them, on the golden checkpoints.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "engine/formats/latents_file.h"
#include "engine/formats/safetensors_writer.h"
#include "engine/pipeline/latents_input.h"
#include "engine/schedulers/seeded_noise.h"
#include "tests/engine/formats/files.h"
#include "tests/engine/runtime/residency_fixture.h"
#include "tests/fakes/fake_savepoint_keeper.h"

namespace wan {
namespace {

using fakes::FakeSavepointKeeper;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using wan::testing::ReadFile;

using File = std::shared_ptr<const std::string>;

// Notes the stages and asks for a stop when one of them begins.
class Stages final : public TelemetrySink {
 public:
  explicit Stages(std::optional<Stage> stop_at = {}) : stop_at_(stop_at) {}
  void OnSpanStart(const SpanStart& start) override {
    begun.push_back(NameOf(start.stage));
    if (start.stage == stop_at_) stop.request_stop();
  }
  std::stop_source stop;
  std::vector<std::string> begun;

 private:
  const std::optional<Stage> stop_at_;
};

class LatentsEngineTest : public ResidencyTest {
 protected:
  struct Result {
    File latents;
    std::string video;
    std::vector<std::string> stages;
    absl::Status status;
  };

  // Runs a job on a new engine, so that nothing is left of an earlier one.
  Result Make(const std::string& checkpoint, GenerationRequest request,
              FakeSavepointKeeper* keeper = nullptr, const std::optional<Stage>& stop_at = {}) {
    const auto engine = MakeEngine({});
    Load(*engine, "m", checkpoint);
    const absl::StatusOr<GenerationPlan> plan = engine->Plan(request);
    if (!plan.ok()) return {.status = plan.status()};
    Stages stages(stop_at);
    Recorder recorder(SystemClock(), engine->Monitor(), {&stages});
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLosslessMkv, folder_ / "video.mkv"},
                                             {OutputKind::kLatents, folder_ / "latents"}};
    Result result;
    result.status =
        engine->Generate(*plan, outputs, recorder, observer, stages.stop.get_token(), keeper);
    result.stages = stages.begun;
    if (!result.status.ok()) return result;
    result.latents = std::make_shared<const std::string>(ReadFile(outputs[1].path));
    result.video = ReadFile(outputs[0].path);
    return result;
  }

  File Write(const at::Tensor& latents) {
    const at::Tensor whole = latents.contiguous();
    const std::span bytes(static_cast<const std::byte*>(whole.const_data_ptr()), whole.nbytes());
    const bool is_half = whole.scalar_type() == at::kHalf;
    EXPECT_TRUE(WriteSafetensors(folder_ / "written",
                                 {{"x", is_half ? "F16" : "F32", whole.sizes().vec(), bytes}})
                    .ok());
    return std::make_shared<const std::string>(ReadFile(folder_ / "written"));
  }

  static at::Tensor Read(const File& file) { return ToLatents(*FindLatents(*file), at::kCPU); }

  static GenerationRequest Request() {
    GenerationRequest request = SmallRequest("m");
    request.outputs = {OutputKind::kLosslessMkv, OutputKind::kLatents};
    return request;
  }
};

TEST_F(LatentsEngineTest, TheNoiseOfASeedGivesTheBitsOfTheSeed) {
  for (const char* checkpoint : {"ti2v-5b", "t2v-a14b"}) {
    GenerationRequest request = Request();
    const Result seeded = Make(checkpoint, request);
    ASSERT_TRUE(seeded.status.ok()) << seeded.status;
    request.initial_latents =
        Write(DrawNoise(Read(seeded.latents).sizes(), *request.seed, at::kCPU));
    request.seed = 99;
    const Result given = Make(checkpoint, request);
    ASSERT_TRUE(given.status.ok()) << given.status;
    EXPECT_TRUE(*given.latents == *seeded.latents) << checkpoint;
    EXPECT_TRUE(given.video == seeded.video) << checkpoint;
  }
}

TEST_F(LatentsEngineTest, DecodingAloneGivesTheBitsOfTheJobThatMadeTheLatents) {
  for (const char* checkpoint : {"ti2v-5b", "t2v-a14b", "i2v-a14b"}) {
    GenerationRequest request = Request();
    if (std::string(checkpoint) != "t2v-a14b") request.image = GoldenImage();
    const Result whole = Make(checkpoint, request);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    // The image gave the video another size than the request.
    const auto engine = MakeEngine({});
    Load(*engine, "m", checkpoint);
    const VideoShape size = engine->Plan(request)->shape;
    request.image = nullptr;
    request.width = size.width;
    request.height = size.height;
    request.latents = whole.latents;
    request.steps = 0;
    request.prompt.clear();
    const Result decoded = Make(checkpoint, request);
    ASSERT_TRUE(decoded.status.ok()) << decoded.status;
    EXPECT_TRUE(decoded.video == whole.video) << checkpoint;
    EXPECT_TRUE(*decoded.latents == *whole.latents) << checkpoint;
    EXPECT_EQ(decoded.stages.size(), 3U) << "preprocessing, decoding and encoding";
    EXPECT_THAT(decoded.stages, Contains("VAE_Decoding"));
  }
}

TEST_F(LatentsEngineTest, AtFullStrengthNothingIsLeftOfTheLatents) {
  GenerationRequest request = Request();
  request.solver = "euler";  // whose first level is 1
  const Result plain = Make("ti2v-5b", request);
  ASSERT_TRUE(plain.status.ok()) << plain.status;
  request.latents = Write(5 * Read(plain.latents));
  request.strength = 1;
  EXPECT_TRUE(*Make("ti2v-5b", request).latents == *plain.latents);
}

// Other latents with other noise may have the same mixture, but only at one level.
TEST_F(LatentsEngineTest, TheFirstStepBeginsWithTheMixtureOfItsLevel) {
  GenerationRequest request = Request();
  const Result plain = Make("ti2v-5b", request);
  ASSERT_TRUE(plain.status.ok()) << plain.status;
  const at::Tensor clean = Read(plain.latents);
  const at::Tensor noise = DrawNoise(clean.sizes(), 11, at::kCPU);
  EXPECT_TRUE(MixNoise(clean, noise, 0.75).allclose(0.25 * clean + 0.75 * noise));
  EXPECT_TRUE(MixNoise(clean, noise, 1).equal(noise));

  request.solver = "euler";
  request.shift = 1;
  request.steps = 4;  // at 1, 0.75, 0.5, 0.25
  request.strength = 0.8;
  request.latents = plain.latents;
  request.initial_latents = Write(noise);
  const Result with_noise = Make("ti2v-5b", request);
  ASSERT_TRUE(with_noise.status.ok()) << with_noise.status;
  const auto mixed = [&](double level) {
    request.latents = Write(0 * clean);
    request.initial_latents = Write(noise + (1 - level) / level * clean);
    return Read(Make("ti2v-5b", request).latents);
  };
  EXPECT_TRUE(mixed(0.75).allclose(Read(with_noise.latents), 1e-3, 1e-3));
  EXPECT_FALSE(mixed(0.8).allclose(Read(with_noise.latents), 1e-3, 1e-3));
  // Without noise of the caller's it is the seed's.
  request.latents = plain.latents;
  request.initial_latents = nullptr;
  request.seed = 11;
  EXPECT_TRUE(*Make("ti2v-5b", request).latents == *with_noise.latents);
}

TEST_F(LatentsEngineTest, OnlyTheStepsFromTheLevelOnAreComputed) {
  GenerationRequest request = Request();
  const Result plain = Make("ti2v-5b", request);
  request.latents = plain.latents;
  request.solver = "euler";
  request.shift = 1;
  request.steps = 4;  // 1, 0.75, 0.5, 0.25
  request.strength = 0.6;
  const Result varied = Make("ti2v-5b", request);
  ASSERT_TRUE(varied.status.ok()) << varied.status;
  EXPECT_THAT(varied.stages, Contains("Step_1_Inference"));
  EXPECT_THAT(varied.stages, Not(Contains("Step_2_Inference")));
}

TEST_F(LatentsEngineTest, AnInterruptedJobGoesOnWithTheSameBits) {
  for (const char* solver : {"unipc", "dpm++", "euler"}) {
    GenerationRequest request = Request();
    request.latents = Make("ti2v-5b", request).latents;
    request.solver = solver;
    request.steps = 6;
    request.strength = 0.9;
    const Result whole = Make("ti2v-5b", request);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    FakeSavepointKeeper keeper;
    keeper.when_stopped = true;
    const Result first = Make("ti2v-5b", request, &keeper, Stage{StageKind::kStepInference, 2});
    EXPECT_EQ(first.status.code(), absl::StatusCode::kCancelled) << first.status;
    EXPECT_THAT(keeper.steps, ElementsAre(2));
    const Result second = Make("ti2v-5b", request, &keeper);
    ASSERT_TRUE(second.status.ok()) << second.status;
    EXPECT_TRUE(*second.latents == *whole.latents) << solver;
  }
}

// An image stays the first frame, whatever the latents have there.
TEST_F(LatentsEngineTest, ImagesAndLatentsWorkTogether) {
  for (const char* checkpoint : {"ti2v-5b", "i2v-a14b"}) {
    GenerationRequest request = Request();
    request.image = GoldenImage();
    const Result plain = Make(checkpoint, request);
    ASSERT_TRUE(plain.status.ok()) << plain.status;
    request.latents = Write(-Read(plain.latents));
    request.strength = 0.9;
    const Result varied = Make(checkpoint, request);
    ASSERT_TRUE(varied.status.ok()) << varied.status;
    const at::Tensor before = Read(plain.latents);
    const at::Tensor after = Read(varied.latents);
    EXPECT_FALSE(after.equal(before));
    if (std::string(checkpoint) == "ti2v-5b") {
      EXPECT_TRUE(after.narrow(1, 0, 1).equal(before.narrow(1, 0, 1)));
    }
    request.latents = nullptr;
    request.strength.reset();
    request.initial_latents = Write(DrawNoise(before.sizes(), *request.seed, at::kCPU));
    EXPECT_TRUE(*Make(checkpoint, request).latents == *plain.latents) << checkpoint;
  }
}

TEST_F(LatentsEngineTest, HalvesAreReadAsWhatTheyRound) {
  GenerationRequest request = Request();
  const Result plain = Make("ti2v-5b", request);
  const at::Tensor half = Read(plain.latents).to(at::kHalf);
  request.steps = 0;
  request.latents = Write(half);
  const Result from_half = Make("ti2v-5b", request);
  ASSERT_TRUE(from_half.status.ok()) << from_half.status;
  EXPECT_TRUE(Read(from_half.latents).equal(half.to(at::kFloat)));
}

TEST_F(LatentsEngineTest, WrongLatentsAreRefusedBeforeTheJob) {
  GenerationRequest request = Request();
  request.initial_latents = std::make_shared<const std::string>("nonsense");
  const absl::Status nonsense = Make("ti2v-5b", request).status;
  ASSERT_EQ(FieldViolationsOf(nonsense).size(), 1U) << nonsense;
  EXPECT_EQ(FieldViolationsOf(nonsense)[0].field, "initial_latents");
  request.initial_latents = Write(at::ones({3, 2, 4, 4}));
  EXPECT_EQ(FieldViolationsOf(Make("ti2v-5b", request).status).size(), 1U);
}

}  // namespace
}  // namespace wan
