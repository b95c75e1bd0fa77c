// Clips of the demo's world through the server's video files.
#include <gtest/gtest.h>

#include "engine/media/video_reader.h"
#include "engine/media/video_writer.h"
#include "tests/client/fakes/temp_folder.h"
#include "tests/demo/evaluate/scene_painter.h"

namespace wan::demo {
namespace {

// Chroma of half the size and compression leave what the detector looks for.
TEST(VideoFilesTest, AnMp4IsGoodEnoughForTheDetector) {
  const std::vector<uint8_t> painted =
      Paint({.objects = {{.colour = "orange", .shape = "heart", .motion = "bounce"}}});
  const fakes::TempFolder folder;
  const std::string path = (folder / "a.mp4").string();
  auto writer = OpenVideoWriter(OutputKind::kMp4, path, {kPaintedSize, kPaintedSize, 16});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const size_t frame = painted.size() / kPaintedFrames;
  for (int t = 0; t < kPaintedFrames; ++t) {
    ASSERT_TRUE((*writer)->Write(std::span(painted).subspan(t * frame, frame)).ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());

  const absl::StatusOr<VideoClip> clip = ReadVideo(path);
  ASSERT_TRUE(clip.ok()) << clip.status();
  const absl::StatusOr<Sight> sight = Detect({clip->rgb, clip->frames, clip->height, clip->width});
  ASSERT_TRUE(sight.ok()) << sight.status();
  ASSERT_EQ(sight->objects.size(), 1u);
  EXPECT_EQ(sight->objects[0].colour, "orange");
  EXPECT_EQ(sight->objects[0].shape, "heart");
  EXPECT_EQ(sight->objects[0].motion, "bounce");
}

}  // namespace
}  // namespace wan::demo
