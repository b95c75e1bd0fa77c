// Videos that are seen while they are made, however their frames come to be decoded.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/recorder.h"
#include "engine/media/video_reader.h"
#include "tests/engine/runtime/residency_fixture.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/stage_fault.h"

namespace wan {
namespace {

// Joins the parts of each stream; a part that names its codec begins one.
class Streams final : public GenerationObserver {
 public:
  void OnVideoPart(const VideoPart& part) override {
    if (!part.codec.empty()) all.emplace_back();
    if (all.empty()) {
      ADD_FAILURE() << "a stream begins with its header";
    } else {
      all.back() += part.bytes;
    }
  }
  std::vector<std::string> all;
};

class LiveVideoEngineTest : public ResidencyTest {
 protected:
  // Wide enough for two tiles.
  static GenerationRequest Wide(int frames) {
    GenerationRequest request = SmallRequest("m");
    request.width = 256;
    request.num_frames = frames;
    request.steps = 1;
    request.outputs = {OutputKind::kMp4};
    request.progressive = true;
    return request;
  }

  // Returns the bytes of the file.
  std::string Make(Engine& engine, const GenerationRequest& request, TileGrid tiles,
                   Streams& streams, std::vector<TelemetrySink*> sinks = {}) const {
    absl::StatusOr<GenerationPlan> plan = engine.Plan(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan->decode_tiles = tiles;
    Recorder recorder(SystemClock(), engine.Monitor(), std::move(sinks));
    const std::vector<OutputFile> outputs = {{OutputKind::kMp4, folder_ / "video.mp4"}};
    const absl::Status made = engine.Generate(*plan, outputs, recorder, streams, {});
    EXPECT_TRUE(made.ok()) << made;
    std::ifstream in(outputs[0].path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  // The stream must show the frames of the file.
  void ExpectFramesOf(const std::string& file, const std::string& stream, int frames) const {
    const VideoClip kept = Clip(file);
    const VideoClip live = Clip(stream);
    EXPECT_EQ(kept.frames, frames);
    EXPECT_EQ(live.frames, kept.frames);
    EXPECT_TRUE(live.rgb == kept.rgb);
  }

 private:
  VideoClip Clip(const std::string& bytes) const {
    const std::filesystem::path path = folder_ / "read.mp4";
    std::ofstream(path, std::ios::binary) << bytes;
    absl::StatusOr<VideoClip> clip = ReadVideo(path);
    EXPECT_TRUE(clip.ok()) << clip.status();
    return clip.ok() ? *std::move(clip) : VideoClip();
  }
};

TEST_F(LiveVideoEngineTest, TilesAndGroupsOfDevicesGiveTheFramesOfTheFile) {
  constexpr int kFrames = 33;  // several fragments
  GenerationRequest unseen = Wide(kFrames);
  unseen.progressive = false;
  for (const size_t ranks : {1, 2}) {
    const auto engine = MakeEngine({}, /*limit=*/0, ranks);
    Load(*engine, "m", "ti2v-5b");
    for (const TileGrid tiles : {TileGrid{1, 1}, TileGrid{1, 2}}) {
      SCOPED_TRACE(testing::Message() << ranks << " devices, " << tiles.columns << " tiles");
      Streams streams, none;
      const std::string file = Make(*engine, Wide(kFrames), tiles, streams);
      ASSERT_EQ(streams.all.size(), 1u);
      ExpectFramesOf(file, streams.all[0], kFrames);
      EXPECT_TRUE(Make(*engine, unseen, tiles, none) == file) << "watching changes no byte";
      EXPECT_EQ(none.all.size(), 0u);
    }
  }
}

TEST_F(LiveVideoEngineTest, ADecodingThatGoesOnInTilesBeginsAnotherStream) {
  FailingAllocator allocator;
  const auto engine = MakeEngine({});
  Load(*engine, "m", "ti2v-5b");
  constexpr int kFrames = 41;  // the encoder holds back fewer
  GenerationRequest request = Wide(kFrames);
  request.width = 512;  // the narrowest that is cut when memory ends
  StageFault count(allocator, StageKind::kVaeDecoding, StageFault::kNever);
  Streams whole, streams;
  Make(*engine, request, {1, 1}, whole, {&count});
  ASSERT_EQ(whole.all.size(), 1u);
  StageFault fault(allocator, StageKind::kVaeDecoding, count.allocations());
  const std::string file = Make(*engine, request, {1, 1}, streams, {&fault});
  EXPECT_EQ(fault.spans(), 2) << "one attempt, and one in tiles";
  ASSERT_EQ(streams.all.size(), 2u);
  EXPECT_LT(streams.all[0].size(), whole.all[0].size()) << "it breaks off";
  EXPECT_TRUE(whole.all[0].starts_with(streams.all[0]));
  ExpectFramesOf(file, streams.all[1], kFrames);
}

}  // namespace
}  // namespace wan
