// What an engine says about attention when it loads a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/api/engine_factory.h"
#include "engine/api/recorder.h"

namespace wan {
namespace {

using testing::ElementsAre;
using testing::Pair;

class SampleSink final : public TelemetrySink {
 public:
  void OnSample(const Sample& sample) override {
    if (sample.name == "attention_kernels") samples.push_back(sample);
  }
  std::vector<Sample> samples;
};

TEST(AttentionReportTest, ALoadTellsItsKernelsOnce) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeWanEngine({"cpu"}, {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  SampleSink sink;
  Recorder recorder(SystemClock(), (*engine)->Monitor(), {&sink});
  const absl::Status loaded =
      (*engine)->LoadModel({"m", WAN_CHECKPOINT_DIR "/ti2v-5b/original"}, recorder);
  ASSERT_TRUE(loaded.ok()) << loaded;
  ASSERT_EQ(sink.samples.size(), 1u);
  EXPECT_THAT(sink.samples.front().labels,
              ElementsAre(Pair("cross", "libtorch"), Pair("self", "libtorch")));
}

}  // namespace
}  // namespace wan
