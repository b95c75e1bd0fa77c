// Recorded forwards on a GPU: the bits are those of forwards whose kernels are launched one by one,
// whatever happens to weights, texts and sizes in between.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/device/device_moment.h"
#include "engine/models/block_marks.h"
#include "engine/models/wan/transformer.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/weight_patch.h"
#include "tests/engine/golden_dit.h"

namespace wan {
namespace {

const at::Device kGpu(at::kCUDA, 0);

// A transformer with its weights, recorded or not.
struct Loaded {
  std::shared_ptr<ComponentWeights> weights;
  std::unique_ptr<VideoTransformer> transformer;

  Loaded(const GoldenDitCase& golden, at::ScalarType dtype, bool record) {
    weights =
        std::make_shared<ComponentWeights>(MakeWeightMover(kGpu), ComponentWeights::Home::kDevice);
    const Checkpoint& checkpoint = GoldenCheckpoint(golden.checkpoint + "/original");
    transformer = LoadWanTransformer(checkpoint.transformer(golden.expert),
                                     checkpoint.transformer_config(golden.expert),
                                     {.device = kGpu,
                                      .dtype = dtype,
                                      .weights = weights,
                                      .graphs = MakeDeviceGraphRecorder(kGpu)})
                      .value();
    transformer->RecordForwards(record);
  }

  at::Tensor Forward(const GoldenDitCase& golden, const TextConditioning& text, double scale) {
    return transformer->Forward(golden.latents * scale, golden.timestep, text).value();
  }
};

// Adds to a matrix of the first block where it lies, as a LoRA does.
class Addition final : public WeightPatch {
 public:
  explicit Addition(NamedWeight weight) : weight_(std::move(weight)) {}
  bool Touches(size_t group) const override { return group == weight_.group; }
  void Apply(size_t, WeightMover&) const override { weight_.tensor.add_(0.01); }

 private:
  const NamedWeight weight_;
};

class ForwardGraphsGpuTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ForwardGraphsGpuTest, GiveTheBitsOfLaunchedKernels) {
  for (const GoldenDitCase& golden : LoadGoldenDitCases()) {
    SCOPED_TRACE(golden.id);
    Loaded launched(golden, GetParam(), false);
    Loaded recorded(golden, GetParam(), true);
    const std::vector<at::Tensor> reversed(golden.contexts.rbegin(), golden.contexts.rend());
    for (const auto& contexts : {golden.contexts, reversed}) {
      const auto text = launched.transformer->PrepareText(contexts).value();
      const auto same_text = recorded.transformer->PrepareText(contexts).value();
      for (const double scale : {1.0, 0.5, 2.0, -1.0}) {
        EXPECT_TRUE(at::equal(recorded.Forward(golden, *same_text, scale),
                              launched.Forward(golden, *text, scale)))
            << scale;
      }
    }
    EXPECT_GT(recorded.transformer->RecordedBytes(), 0);
    EXPECT_EQ(launched.transformer->RecordedBytes(), 0);
    recorded.transformer->RecordForwards(false);
    EXPECT_EQ(recorded.transformer->RecordedBytes(), 0);
  }
}

// Whether the forward is recorded or launched, its marks change no bits, and what they say of one
// block lies within what the device took for all.
TEST_P(ForwardGraphsGpuTest, AreNotChangedByTheProfileOfABlock) {
  for (const GoldenDitCase& golden : LoadGoldenDitCases()) {
    SCOPED_TRACE(golden.id);
    for (const bool record : {false, true}) {
      Loaded loaded(golden, GetParam(), record);
      const auto text = loaded.transformer->PrepareText(golden.contexts).value();
      // The second of two forwards is a replayed one.
      loaded.Forward(golden, *text, 1);
      const at::Tensor plain = loaded.Forward(golden, *text, 1);
      BlockMarks marks;
      loaded.transformer->MarkBlock(&marks);
      const DeviceMoment begin(kGpu);
      const at::Tensor marked = loaded.Forward(golden, *text, 1);
      const DeviceMoment end(kGpu);
      EXPECT_TRUE(at::equal(marked, plain)) << record;  // waits for the device, too
      EXPECT_TRUE(at::equal(loaded.Forward(golden, *text, 1), plain)) << record;
      const auto profile = marks.Profile("forward");
      ASSERT_NE(profile, nullptr);
      EXPECT_EQ(profile->texts, static_cast<int>(golden.contexts.size()));
      ASSERT_FALSE(profile->operators.empty());
      double block = 0;
      for (const TimedOperator& one : profile->operators) {
        EXPECT_GE(one.seconds, 0) << one.work.name;
        block += one.seconds;
      }
      EXPECT_GT(block, 0);
      EXPECT_LT(block, begin.SecondsUntil(end));
    }
  }
}

TEST_P(ForwardGraphsGpuTest, FollowWeightsThatMoveAndArePatched) {
  const GoldenDitCase golden = LoadGoldenDitCases().front();
  Loaded launched(golden, GetParam(), false);
  Loaded recorded(golden, GetParam(), true);
  const auto text = launched.transformer->PrepareText(golden.contexts).value();
  const auto same_text = recorded.transformer->PrepareText(golden.contexts).value();
  const auto expect_the_same = [&] {
    for (const double scale : {1.0, 0.5, 2.0}) {
      EXPECT_TRUE(at::equal(recorded.Forward(golden, *same_text, scale),
                            launched.Forward(golden, *text, scale)))
          << scale;
    }
  };
  expect_the_same();
  const uint64_t before = recorded.weights->Placement();
  recorded.weights->Park();
  // What lay there is somebody else's now.
  const at::Tensor taken =
      at::full({int64_t{64} << 20}, 7, at::TensorOptions(kGpu).dtype(at::kByte));
  recorded.weights->BringUp();
  EXPECT_NE(recorded.weights->Placement(), before);
  expect_the_same();

  for (Loaded* const loaded : {&launched, &recorded}) {
    loaded->weights->SetPatch(
        std::make_shared<Addition>(loaded->weights->Find("blocks.0.ffn.0.weight").value()));
  }
  const at::Tensor plain = launched.Forward(golden, *text, 1);
  expect_the_same();
  for (Loaded* const loaded : {&launched, &recorded}) loaded->weights->SetPatch(nullptr);
  EXPECT_FALSE(at::equal(launched.Forward(golden, *text, 1), plain)) << "the patch did nothing";
  expect_the_same();

  recorded.weights->Park();
  recorded.weights->Stream();
  expect_the_same();
}

INSTANTIATE_TEST_SUITE_P(DTypes, ForwardGraphsGpuTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

TEST(DeviceGraphGpuTest, WorkThatCannotBeRecordedLeavesTheDeviceAsItWas) {
  const auto recorder = MakeDeviceGraphRecorder(kGpu);
  ASSERT_NE(recorder, nullptr);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor one = at::full({4}, 1.0, at::TensorOptions(kGpu).dtype(at::kFloat));
    EXPECT_THROW(recorder->Record([&] { (one + 1).sum().item<float>(); }), c10::Error);
    EXPECT_EQ((one + one).sum().item<float>(), 8);
    at::Tensor result;
    const auto graph = recorder->Record([&] { result = one * 3; });
    one.fill_(2.0 + i);
    graph->Replay();
    EXPECT_EQ(result.sum().item<float>(), 4 * 3 * (2.0f + static_cast<float>(i)));
  }
}

}  // namespace
}  // namespace wan
