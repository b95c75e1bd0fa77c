// The real engine on the tiny golden checkpoint: its life, its errors, its stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "engine/api/engine_factory.h"
#include "engine/api/errors.h"
#include "engine/api/h264.h"
#include "engine/api/recorder.h"
#include "engine/media/image_decode.h"
#include "engine/media/image_encode.h"
#include "tests/fakes/fake_clock.h"

namespace wan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

const char kCheckpoint[] = WAN_CHECKPOINT_DIR "/ti2v-5b/original";

class StageSink final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override {
    stages.push_back(NameOf(record.stage));
    if (record.stage.kind == StageKind::kModelInitialization) loading = record;
    if (record.step != nullptr) experts.emplace_back(NameOf(record.step->expert));
    if (record.block_profile != nullptr) profiles.push_back(record);
  }
  void OnSample(const Sample& sample) override { samples.push_back(sample); }
  std::vector<std::string> stages;
  std::vector<std::string> experts;  // of the spans of steps
  std::vector<Sample> samples;
  std::vector<SpanRecord> profiles;  // spans that have one
  SpanRecord loading{.stage = StageKind::kModelInitialization};
};

class PreviewObserver final : public GenerationObserver {
 public:
  void OnPreview(const Preview& preview) override { previews.push_back(preview); }
  std::vector<Preview> previews;
};

// Keeps what a job did without.
class OmissionObserver final : public GenerationObserver {
 public:
  void OnPreview(const Preview&) override {
    ++previews;
    if (fails_at_preview) throw std::runtime_error("nobody takes this picture");
  }
  void OnOmission(const Omission& omission) override { omissions.push_back(omission); }
  bool fails_at_preview = false;
  int previews = 0;
  std::vector<Omission> omissions;
};

class WanEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = MakeWanEngine({"cpu"}, {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    recorder_ = std::make_unique<Recorder>(SystemClock(), engine_->Monitor(),
                                           std::vector<TelemetrySink*>{&sink_});
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("engine_" + std::to_string(getpid()) +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Load(const std::string& checkpoint = kCheckpoint) {
    const absl::Status status = engine_->LoadModel({"m", checkpoint}, *recorder_);
    ASSERT_TRUE(status.ok()) << status;
  }

  static GenerationRequest SmallRequest() {
    GenerationRequest request;
    request.model = "m";
    request.prompt = "A red cat.";
    request.width = 64;
    request.height = 32;
    request.num_frames = 5;
    request.steps = 2;
    request.seed = 3;
    return request;
  }

  std::unique_ptr<Engine> engine_;
  StageSink sink_;
  std::unique_ptr<Recorder> recorder_;
  std::filesystem::path folder_;
};

TEST_F(WanEngineTest, LoadingConsistsOfItsComponents) {
  Load();
  const std::vector<SpanPart>& parts = sink_.loading.parts;
  std::vector<std::string> names;
  double end = 0;
  for (const SpanPart& part : parts) {
    names.push_back(part.name);
    EXPECT_GE(part.start_seconds, end);
    end = part.start_seconds + part.seconds;
  }
  EXPECT_THAT(names, ElementsAre("checkpoint", "tokenizer", "text_encoder", "transformer", "vae"));
  EXPECT_LE(end, sink_.loading.seconds);
  const ModelDescription model = engine_->Models()[0];
  EXPECT_EQ(parts[0].bytes, std::nullopt);
  for (size_t i = 0; i < model.components.size(); ++i) {
    EXPECT_EQ(parts[i + 2].bytes, model.components[i].bytes) << parts[i + 2].name;
  }
}

TEST_F(WanEngineTest, APlanSaysWhatItsStagesAreMadeOf) {
  Load();
  const auto plan = engine_->Plan(SmallRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->blocks, 0);
  double flops = 0;
  for (const OperatorWork& work : plan->block_operators) {
    flops += work.flops;
    EXPECT_GT(work.bytes, 0) << work.name;
  }
  // The rest is the embedding of the patches and the head.
  EXPECT_LT(plan->blocks * flops, plan->forward_flops);
  EXPECT_GT(plan->blocks * flops, 0.8 * plan->forward_flops);
  EXPECT_GT(plan->device_memory_bytes, 0u);
  for (const StagePlan& stage : plan->stages) {
    EXPECT_LE(stage.workspace_bytes, stage.activation_bytes);
  }
  EXPECT_GT(engine_->Device().system.cpu_cores, 0);
  EXPECT_NE(engine_->Device().system.libtorch_version, "");
}

TEST_F(WanEngineTest, DescribesWhatItLoaded) {
  Load();
  EXPECT_THAT(sink_.stages, ElementsAre("Model_Initialization"));
  const auto models = engine_->Models();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].family, FamilyId::kTi2v5b);
  EXPECT_EQ(models[0].layout, "original");
  EXPECT_EQ(models[0].spatial_stride, 32);
  EXPECT_EQ(models[0].temporal_stride, 4);
  EXPECT_TRUE(models[0].accepts_image);
  ASSERT_EQ(models[0].components.size(), 3u);
  for (const ComponentDescription& component : models[0].components) {
    EXPECT_GT(component.bytes, 0u) << NameOf(component.component);
    // fp32: four bytes a parameter.
    EXPECT_EQ(component.bytes, 4 * component.parameters) << NameOf(component.component);
    EXPECT_EQ(component.dtype, "fp32");
    EXPECT_EQ(component.device, "cpu");
  }
  EXPECT_EQ(sink_.samples.size(), 4u) << "each component's memory, and the attention's kernels";
}

TEST_F(WanEngineTest, GeneratesEveryKindOfFileAndEveryStage) {
  Load();
  sink_.stages.clear();
  const auto plan = engine_->Plan(SmallRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<OutputFile> outputs = {{OutputKind::kMp4, folder_ / "video.mp4"},
                                           {OutputKind::kLosslessMkv, folder_ / "video.mkv"},
                                           {OutputKind::kLatents, folder_ / "latents.safetensors"}};
  GenerationObserver observer;
  const absl::Status status = engine_->Generate(*plan, outputs, *recorder_, observer, {});
  ASSERT_TRUE(status.ok()) << status;
  for (const OutputFile& output : outputs) {
    EXPECT_GT(std::filesystem::file_size(output.path), 100u) << output.path;
  }
  std::vector<std::string> planned;
  for (const StagePlan& stage : plan->stages) planned.push_back(NameOf(stage.stage));
  EXPECT_THAT(sink_.stages, testing::UnorderedElementsAreArray(planned));
}

TEST_F(WanEngineTest, ARequestChoosesTheQualityOfItsMp4) {
  Load();
  const auto size_with = [&](std::optional<int> crf) {
    GenerationRequest request = SmallRequest();
    request.h264_crf = crf;
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kMp4, folder_ / "video.mp4"}};
    EXPECT_TRUE(engine_->Generate(*engine_->Plan(request), outputs, *recorder_, observer, {}).ok());
    return std::filesystem::file_size(outputs[0].path);
  };
  const uintmax_t usual = size_with(std::nullopt);
  EXPECT_EQ(size_with(H264Options().crf), usual);
  EXPECT_GT(size_with(kBestH264Crf), usual);
  EXPECT_LT(size_with(kWorstH264Crf), usual);
}

// Keeps the parts of a video while it is made.
class PartObserver final : public GenerationObserver {
 public:
  void OnVideoPart(const VideoPart& part) override { parts.push_back(part); }
  std::vector<VideoPart> parts;
};

TEST_F(WanEngineTest, AProgressiveVideoIsSeenWhileItIsMadeAndHasTheSameFile) {
  Load();
  const auto file_of = [&](bool progressive, PartObserver& observer) {
    GenerationRequest request = SmallRequest();
    request.num_frames = 33;
    request.steps = 1;
    request.outputs = {OutputKind::kLosslessMkv, OutputKind::kMp4};
    request.progressive = progressive;
    const std::vector<OutputFile> outputs = {{OutputKind::kLosslessMkv, folder_ / "video.mkv"},
                                             {OutputKind::kMp4, folder_ / "video.mp4"}};
    EXPECT_TRUE(engine_->Generate(*engine_->Plan(request), outputs, *recorder_, observer, {}).ok());
    std::ifstream in(outputs[1].path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  PartObserver nobody, watcher;
  const std::string ordinary = file_of(false, nobody);
  EXPECT_GT(ordinary.size(), 100u);
  EXPECT_TRUE(file_of(true, watcher) == ordinary);
  EXPECT_THAT(nobody.parts, testing::IsEmpty());
  ASSERT_EQ(watcher.parts.size(), 6u);  // a header, and 33 frames in fragments of 8
  EXPECT_THAT(watcher.parts[0].codec, testing::StartsWith("avc1.64"));
}

TEST_F(WanEngineTest, LatentsAloneAreNotDecoded) {
  Load();
  const auto decodes = [&](const std::vector<OutputKind>& kinds) {
    GenerationRequest request = SmallRequest();
    request.outputs = kinds;
    const auto plan = engine_->Plan(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<std::string> planned;
    for (const StagePlan& stage : plan->stages) planned.push_back(NameOf(stage.stage));
    sink_.stages.clear();
    GenerationObserver observer;
    EXPECT_TRUE(engine_->Generate(*plan, {}, *recorder_, observer, {}).ok());
    EXPECT_THAT(sink_.stages, testing::UnorderedElementsAreArray(planned));
    return std::count(planned.begin(), planned.end(), NameOf(StageKind::kVaeDecoding)) == 1;
  };
  EXPECT_FALSE(decodes({OutputKind::kLatents}));
  EXPECT_TRUE(decodes({OutputKind::kLatents, OutputKind::kLosslessMkv}));
  EXPECT_TRUE(decodes({})) << "a video is the default";
}

TEST_F(WanEngineTest, SameSeedSameBytesOtherSeedOtherBytes) {
  Load();
  const auto latents = [&](int64_t seed, const char* file) {
    GenerationRequest request = SmallRequest();
    request.seed = seed;
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / file}};
    EXPECT_TRUE(engine_->Generate(*engine_->Plan(request), outputs, *recorder_, observer, {}).ok());
    std::ifstream in(outputs[0].path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string first = latents(3, "a");
  EXPECT_EQ(first, latents(3, "b"));
  EXPECT_NE(first, latents(4, "c"));
}

TEST_F(WanEngineTest, AProfileChangesNoBit) {
  Load();
  const auto latents = [&](bool profile, const char* file) {
    GenerationRequest request = SmallRequest();
    request.profile = profile;
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / file}};
    EXPECT_TRUE(engine_->Generate(*engine_->Plan(request), outputs, *recorder_, observer, {}).ok());
    std::ifstream in(outputs[0].path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string plain = latents(false, "a");
  EXPECT_TRUE(sink_.profiles.empty());
  EXPECT_EQ(latents(true, "b"), plain);
  ASSERT_EQ(sink_.profiles.size(), 1u);
  EXPECT_EQ(NameOf(sink_.profiles[0].stage), "Step_1_Inference");
  const BlockProfile& profile = *sink_.profiles[0].block_profile;
  double seconds = 0;
  double flops = 0;
  for (const TimedOperator& timed : profile.operators) {
    seconds += timed.seconds;
    flops += timed.work.flops;
  }
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, sink_.profiles[0].seconds);
  double planned = 0;
  const auto plan = engine_->Plan(SmallRequest());
  for (const OperatorWork& work : plan->block_operators) planned += work.flops;
  EXPECT_DOUBLE_EQ(flops, profile.texts * planned) << "the plan has the same operators";
}

TEST_F(WanEngineTest, PreviewsAreJpegsAtTheAskedSteps) {
  Load();
  GenerationRequest request = SmallRequest();
  request.steps = 5;
  request.preview_interval = 2;
  PreviewObserver observer;
  ASSERT_TRUE(engine_->Generate(*engine_->Plan(request), {}, *recorder_, observer, {}).ok());
  ASSERT_EQ(observer.previews.size(), 2u);
  EXPECT_EQ(observer.previews[0].step, 2);
  EXPECT_EQ(observer.previews[1].step, 4);
  // That each shows its own step's estimate is seen in pipeline/golden_pipeline_precision_test.cc.
  std::vector<RgbImage> images;
  for (const Preview& preview : observer.previews) {
    EXPECT_EQ(preview.jpegs.size(), 2u) << "this video has two latents: the first and the last";
    for (const std::string& jpeg : preview.jpegs) {
      EXPECT_EQ(jpeg.substr(0, 3), "\xff\xd8\xff");
      const absl::StatusOr<DecodedImage> decoded = DecodeImage(jpeg);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(decoded->image.width, request.width);
      EXPECT_EQ(decoded->image.height, request.height);
      EXPECT_THAT(images, testing::Not(testing::Contains(decoded->image)));
      images.push_back(decoded->image);
    }
  }
}

TEST_F(WanEngineTest, PreviewsThatFailEndNoJob) {
  Load();
  GenerationRequest request = SmallRequest();
  request.steps = 3;
  request.preview_interval = 1;
  OmissionObserver observer;
  observer.fails_at_preview = true;
  const std::vector<OutputFile> outputs = {{OutputKind::kLosslessMkv, folder_ / "video.mkv"}};
  const absl::Status status =
      engine_->Generate(*engine_->Plan(request), outputs, *recorder_, observer, {});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(std::filesystem::file_size(outputs[0].path), 100u);
  EXPECT_EQ(observer.previews, 1) << "a job does not pay for it again";
  ASSERT_EQ(observer.omissions.size(), 1u);
  EXPECT_FALSE(observer.omissions[0].output.has_value());
  EXPECT_THAT(std::string(observer.omissions[0].status.message()),
              HasSubstr("nobody takes this picture"));
}

// The device that is always full stands for a disk that is.
TEST_F(WanEngineTest, AFullDiskEndsAJobOnlyForItsFirstFile) {
  Load();
  const auto generate = [&](const std::vector<OutputFile>& outputs, OmissionObserver& observer) {
    GenerationRequest request = SmallRequest();
    for (const OutputFile& output : outputs) request.outputs.push_back(output.kind);
    return engine_->Generate(*engine_->Plan(request), outputs, *recorder_, observer, {});
  };
  const OutputFile mkv{OutputKind::kLosslessMkv, folder_ / "video.mkv"};
  for (const OutputFile& lost : {OutputFile{OutputKind::kLatents, "/dev/full"},
                                 OutputFile{OutputKind::kLatents, folder_ / "no" / "latents"},
                                 OutputFile{OutputKind::kLosslessMkv, "/dev/full"},
                                 OutputFile{OutputKind::kMp4, folder_ / "no" / "video.mp4"}}) {
    SCOPED_TRACE(lost.path);
    std::filesystem::remove(mkv.path);
    OmissionObserver observer;
    const absl::Status status = generate({mkv, lost}, observer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(std::filesystem::file_size(mkv.path), 100u);
    ASSERT_EQ(observer.omissions.size(), 1u);
    EXPECT_EQ(observer.omissions[0].output, lost.kind);
    EXPECT_FALSE(observer.omissions[0].status.ok());

    OmissionObserver unheard;
    EXPECT_FALSE(generate({lost, mkv}, unheard).ok()) << "this is what the job was for";
  }
}

TEST_F(WanEngineTest, APlanIsCarriedOutWithoutReadingItsRequestAgain) {
  Load();
  GenerationRequest request = SmallRequest();
  request.image = std::make_shared<const std::string>(
      EncodePng(std::vector<uint8_t>(3 * 64 * 64, 77), 64, 64).value());
  const auto latents = [&](const GenerationPlan& plan) {
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"}};
    const absl::Status status = engine_->Generate(plan, outputs, *recorder_, observer, {});
    EXPECT_TRUE(status.ok()) << status;
    std::ifstream in(outputs[0].path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  GenerationPlan plan = *engine_->Plan(request);
  const std::string expected = latents(plan);
  plan.request.prompt = "\xff is not UTF-8";
  plan.request.negative_prompt = "\xff";
  EXPECT_EQ(latents(plan), expected);
}

// The size of a picture of which nothing else is there.
TEST_F(WanEngineTest, AnImageIsMeasuredForThePlanCheckedOnItsOwnAndDecodedByTheJob) {
  Load();
  GenerationRequest request = SmallRequest();
  std::string file = EncodePng(std::vector<uint8_t>(3 * 64 * 64, 77), 64, 64).value();
  EXPECT_EQ(engine_->CheckImage(file, Color())->width, 64);
  file[file.size() - 20] ^= 1;  // in the pixels, shortly before the end chunk
  request.image = std::make_shared<const std::string>(file);
  const absl::StatusOr<GenerationPlan> plan = engine_->Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();

  GenerationObserver observer;
  const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"}};
  for (const absl::Status& refused :
       {engine_->CheckImage(file, Color()).status(),
        engine_->Generate(*plan, outputs, *recorder_, observer, {})}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_THAT(FieldViolationsOf(refused), ElementsAre(Field(&FieldViolation::field, "image")));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is a broken PNG file: "));
  }
}

// DIFFERENCES 7: upstream runs both forwards and multiplies what the second one adds by 0.
TEST_F(WanEngineTest, GuidanceOfOneIsUpstreamsFlow) {
  Load();
  const auto latents = [&](double guidance) {
    GenerationRequest request = SmallRequest();
    request.guidance_scale = {guidance};
    const auto plan = engine_->Plan(request);
    EXPECT_EQ(plan->guided, guidance != 1);
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"}};
    EXPECT_TRUE(engine_->Generate(*plan, outputs, *recorder_, observer, {}).ok());
    std::ifstream in(outputs[0].path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    // Behind the header: 48 x 2 x 2 x 4 numbers.
    std::vector<float> values(48 * 2 * 2 * 4);
    std::memcpy(values.data(), bytes.data() + bytes.size() - 4 * values.size(), 4 * values.size());
    return values;
  };
  const std::vector<float> one = latents(1);
  // The next number above 1, for which both forwards run.
  const std::vector<float> both = latents(std::nextafter(1.0, 2.0));
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference += std::pow(one[i] - both[i], 2);
    size += std::pow(both[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-6);
}

TEST_F(WanEngineTest, UnknownModelIsNotReady) {
  const auto plan = engine_->Plan(SmallRequest());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(plan.status()), "MODEL_NOT_READY");
  EXPECT_EQ(engine_->UnloadModel("m").code(), absl::StatusCode::kNotFound);
}

TEST_F(WanEngineTest, AnUnloadedModelIsGone) {
  Load();
  EXPECT_TRUE(engine_->UnloadModel("m").ok());
  EXPECT_TRUE(engine_->Models().empty());
  EXPECT_FALSE(engine_->Plan(SmallRequest()).ok());
}

// The server's sinks take locks under which its other threads ask the engine for its models: a lock
// of the engine held over a call of a sink would be waited for in a circle.
TEST_F(WanEngineTest, SinksMayAskTheEngine) {
  class AskingSink final : public TelemetrySink {
   public:
    explicit AskingSink(Engine& engine) : engine_(engine) {}
    void OnSpanStart(const SpanStart&) override { Ask(); }
    void OnSpanEnd(const SpanRecord&) override { Ask(); }
    void OnSample(const Sample&) override { Ask(); }
    int asked = 0;

   private:
    void Ask() {
      asked += engine_.Models().size() == 1 ? 1 : 0;
      EXPECT_EQ(engine_.Plan(SmallRequest()).ok(), !engine_.Models().empty());
    }
    Engine& engine_;
  } asking(*engine_);
  Recorder recorder(SystemClock(), engine_->Monitor(), {&asking});
  ASSERT_TRUE(engine_->LoadModel({"m", kCheckpoint}, recorder).ok());
  const auto plan = engine_->Plan(SmallRequest());
  ASSERT_TRUE(plan.ok()) << plan.status();
  GenerationObserver observer;
  const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder_ / "latents"}};
  EXPECT_TRUE(engine_->Generate(*plan, outputs, recorder, observer, {}).ok());
  EXPECT_GT(asking.asked, 10);
}

TEST_F(WanEngineTest, WarmupKeepsTheShape) {
  Load();
  const VideoShape shape{32, 64, 1};
  ASSERT_TRUE(engine_->Warmup("m", std::span(&shape, 1)).ok());
  ASSERT_TRUE(engine_->Warmup("m", {}).ok());
  EXPECT_THAT(engine_->Models()[0].warm_shapes, ElementsAre(shape, VideoShape{64, 64, 5}));
  const VideoShape wrong{33, 64, 1};
  EXPECT_EQ(engine_->Warmup("m", std::span(&wrong, 1)).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WanEngineTest, DescribesBothExperts) {
  Load(WAN_CHECKPOINT_DIR "/i2v-a14b/diffusers");
  const auto models = engine_->Models();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].family, FamilyId::kI2vA14b);
  EXPECT_EQ(models[0].experts, 2);
  EXPECT_EQ(models[0].spatial_stride, 16);
  EXPECT_EQ(models[0].temporal_stride, 4);
  EXPECT_TRUE(models[0].accepts_image);
  EXPECT_THAT(models[0].defaults.guidance_scale, ElementsAre(3.5, 3.5));
  std::vector<std::string> components;
  for (const ComponentDescription& component : models[0].components) {
    components.emplace_back(NameOf(component.component));
    EXPECT_EQ(component.bytes, 4 * component.parameters) << NameOf(component.component);
  }
  EXPECT_THAT(components, ElementsAre("text_encoder", "transformer", "transformer_2", "vae"));
}

TEST_F(WanEngineTest, WarmupGivesAnImageToAModelThatNeedsOne) {
  Load(WAN_CHECKPOINT_DIR "/i2v-a14b/original");
  ASSERT_TRUE(engine_->Warmup("m", {}).ok());
  const VideoShape shape{48, 16, 1};
  ASSERT_TRUE(engine_->Warmup("m", std::span(&shape, 1)).ok());
  EXPECT_THAT(engine_->Models()[0].warm_shapes, ElementsAre(VideoShape{32, 32, 5}, shape));
}

TEST_F(WanEngineTest, EveryStepNamesItsExpert) {
  Load(WAN_CHECKPOINT_DIR "/t2v-a14b/diffusers");
  GenerationRequest request = SmallRequest();
  request.steps = 4;
  request.shift = 3;  // timesteps 999 899 749 499
  GenerationObserver observer;
  sink_.experts.clear();
  ASSERT_TRUE(engine_->Generate(*engine_->Plan(request), {}, *recorder_, observer, {}).ok());
  EXPECT_THAT(sink_.experts,
              ElementsAre("high", "high", "high", "high", "low", "low", "low", "low"));
}

TEST_F(WanEngineTest, AMissingCheckpointLeavesTheEngineUsable) {
  const absl::Status status = engine_->LoadModel({"m", folder_ / "nothing"}, *recorder_);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing"));
  Load();
}

TEST_F(WanEngineTest, DefaultsThatNoRequestCouldHaveAreAnErrorOfTheCheckpoint) {
  const std::filesystem::path checkpoint = folder_ / "checkpoint";
  std::filesystem::create_directory(checkpoint);
  for (const auto& entry : std::filesystem::directory_iterator(kCheckpoint)) {
    std::filesystem::create_symlink(entry.path(), checkpoint / entry.path().filename());
  }
  const auto load_with = [&](const char* defaults) {
    std::ofstream(checkpoint / "generation_defaults.json") << defaults;
    return engine_->LoadModel({"m", checkpoint.string()}, *recorder_);
  };
  const absl::Status status = load_with(R"({"width": 250, "num_frames": 32})");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("generation_defaults.json"), HasSubstr("width"), HasSubstr("250"),
                    HasSubstr("num_frames")));
  ASSERT_TRUE(load_with(R"({"width": 256, "steps": 3})").ok());
  EXPECT_EQ(engine_->Models().front().defaults.width, 256);
  EXPECT_EQ(engine_->Models().front().defaults.steps, 3);
  EXPECT_EQ(engine_->Models().front().defaults.height, 704);
}

TEST_F(WanEngineTest, AnUnwritableOutputEndsTheJobNotTheEngine) {
  Load();
  GenerationObserver observer;
  const std::vector<OutputFile> outputs = {{OutputKind::kMp4, folder_ / "no" / "video.mp4"}};
  const absl::Status status =
      engine_->Generate(*engine_->Plan(SmallRequest()), outputs, *recorder_, observer, {});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("video.mp4"));
  EXPECT_TRUE(engine_->Generate(*engine_->Plan(SmallRequest()), {}, *recorder_, observer, {}).ok());
}

TEST_F(WanEngineTest, TextsAndImagesAreReadBeforeTheJobIsAccepted) {
  Load();
  GenerationRequest request = SmallRequest();
  request.prompt = " \n ";
  request.negative_prompt = std::string(4000, 'x') + " y";
  for (int i = 0; i < 2000; ++i) *request.negative_prompt += " y";
  request.image = std::make_shared<const std::string>("not an image");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolationsOf(engine_->Plan(request).status())) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, testing::UnorderedElementsAre("prompt", "negative_prompt", "image"));
}

TEST(EngineFactoryTest, NamesWhatIsWrong) {
  EXPECT_THAT(std::string(MakeWanEngine({"tpu"}, {}).status().message()),
              HasSubstr("'tpu'; must be cpu or cuda:N"));
  EXPECT_THAT(std::string(MakeWanEngine({"cuda:x"}, {}).status().message()),
              HasSubstr("'cuda:x'; must be cpu or cuda:N"));
  EXPECT_THAT(std::string(MakeWanEngine({"cpu"}, {.dtype = "int4"}).status().message()),
              HasSubstr("'int4'; must be fp32 or bf16"));
  // No driver or no such GPU; tests/engine/device/device_name_test.cc has the range.
  EXPECT_EQ(MakeWanEngine({"cuda:99"}, {}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wan
