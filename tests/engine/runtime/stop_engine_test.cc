// A stop request ends jobs, loads and warm-ups in the stage in which it comes. That is counted in
// stages here; seconds are measured on a card (scripts/gpu/check_stop).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/api/engine_factory.h"
#include "engine/api/errors.h"
#include "engine/media/image_encode.h"

namespace wan {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

const char kCheckpoint[] = WAN_CHECKPOINT_DIR "/ti2v-5b/original";

// Asks for a stop when a stage begins, and notes what happens from there on.
class StoppingSink final : public TelemetrySink {
 public:
  explicit StoppingSink(Stage stage) : stage_(stage) {}

  void OnSpanStart(const SpanStart& start) override {
    const std::scoped_lock lock(mutex_);
    if (stop.stop_requested()) begun_after.push_back(NameOf(start.stage));
    if (start.stage == stage_) stop.request_stop();
  }
  void OnSpanEnd(const SpanRecord& record) override {
    const std::scoped_lock lock(mutex_);
    if (record.stage == stage_) ended = record.status;
  }
  void OnSample(const Sample& sample) override {
    const std::scoped_lock lock(mutex_);
    if (sample.name == "stop_seconds") stop_seconds.push_back(sample.value);
  }

  std::stop_source stop;
  std::vector<std::string> begun_after;
  absl::Status ended;
  std::vector<double> stop_seconds;

 private:
  const Stage stage_;
  std::mutex mutex_;
};

class StopEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = MakeWanEngine({"cpu"}, {}).value();
    folder_ = std::filesystem::path(testing::TempDir()) / ("stop_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Load() {
    Recorder unheard(SystemClock(), engine_->Monitor(), {});
    ASSERT_TRUE(engine_->LoadModel({"m", kCheckpoint}, unheard).ok());
  }

  GenerationPlan Plan() const {
    GenerationRequest request;
    request.model = "m";
    request.prompt = "A red cat.";
    request.width = 64;
    request.height = 64;
    request.num_frames = 9;
    request.steps = 2;
    request.seed = 3;
    request.image = std::make_shared<const std::string>(
        EncodePng(std::vector<uint8_t>(3 * 64 * 64), 64, 64).value());
    return engine_->Plan(request).value();
  }

  std::unique_ptr<Engine> engine_;
  std::filesystem::path folder_;
};

TEST_F(StopEngineTest, EveryStageOfAJobIsStopped) {
  Load();
  const GenerationPlan plan = Plan();
  for (const StagePlan& stage : plan.stages) {
    SCOPED_TRACE(NameOf(stage.stage));
    StoppingSink sink(stage.stage);
    Recorder recorder(SystemClock(), engine_->Monitor(), {&sink});
    GenerationObserver observer;
    const std::vector<OutputFile> outputs = {{OutputKind::kLosslessMkv, folder_ / "video.mkv"}};
    const absl::Status status =
        engine_->Generate(plan, outputs, recorder, observer, sink.stop.get_token());
    ASSERT_TRUE(sink.stop.stop_requested()) << "the stage did not run";
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    // The encoder's thread may be about to begin while the decoder's is asked to stop.
    if (stage.stage != Stage(StageKind::kVaeDecoding)) {
      EXPECT_THAT(sink.begun_after, IsEmpty());
    }
    // Loading of a resident expert, and reading what was read already, take no time to be stopped.
    const bool computes = stage.stage.kind != StageKind::kTi2vPreprocess &&
                          stage.stage.kind != StageKind::kStepLoading;
    if (computes) {
      EXPECT_EQ(sink.ended.code(), absl::StatusCode::kCancelled) << sink.ended;
    }
    EXPECT_EQ(sink.stop_seconds.size(), 1u);
  }
  // The engine goes on.
  Recorder unheard(SystemClock(), engine_->Monitor(), {});
  GenerationObserver observer;
  EXPECT_TRUE(engine_->Generate(plan, {}, unheard, observer, {}).ok());
}

TEST_F(StopEngineTest, ALoadThatIsStoppedLeavesNothing) {
  StoppingSink sink(StageKind::kModelInitialization);
  Recorder recorder(SystemClock(), engine_->Monitor(), {&sink});
  const absl::Status status =
      engine_->LoadModel({"m", kCheckpoint}, recorder, sink.stop.get_token());
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_THAT(engine_->Models(), IsEmpty());
  EXPECT_EQ(sink.stop_seconds.size(), 1u);
  Load();
}

TEST_F(StopEngineTest, AWarmupThatIsStoppedRunsNothing) {
  Load();
  std::stop_source stop;
  stop.request_stop();
  const VideoShape shape{64, 64, 5};
  EXPECT_EQ(engine_->Warmup("m", std::span(&shape, 1), stop.get_token()).code(),
            absl::StatusCode::kCancelled);
  EXPECT_THAT(engine_->Models()[0].warm_shapes, IsEmpty());
}

TEST_F(StopEngineTest, AWarmupPlansEveryShapeBeforeItRunsOne) {
  Load();
  const std::vector<VideoShape> shapes = {{64, 64, 5}, {65, 64, 5}, {64, 64, 6}};
  for (const absl::Status& status :
       {engine_->CheckWarmup("m", shapes), engine_->Warmup("m", shapes)}) {
    std::vector<std::string> fields;
    for (const FieldViolation& violation : FieldViolationsOf(status)) {
      fields.push_back(violation.field);
    }
    EXPECT_THAT(fields, UnorderedElementsAre("shapes[1].width", "shapes[2].num_frames"));
  }
  EXPECT_THAT(engine_->Models()[0].warm_shapes, IsEmpty());
}

}  // namespace
}  // namespace wan
