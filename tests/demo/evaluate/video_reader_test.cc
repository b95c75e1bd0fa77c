#include "demo/evaluate/video_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/media/video_writer.h"
#include "tests/client/fakes/temp_folder.h"
#include "tests/demo/evaluate/scene_painter.h"

namespace wan::demo {
namespace {

using testing::HasSubstr;

class VideoReaderTest : public testing::Test {
 protected:
  std::string Write(OutputKind kind, const std::string& name, const std::vector<uint8_t>& clip) {
    const std::string path = (folder_ / name).string();
    auto writer = OpenVideoWriter(kind, path, {kPaintedSize, kPaintedSize, 16});
    EXPECT_TRUE(writer.ok()) << writer.status();
    const size_t frame = clip.size() / kPaintedFrames;
    for (int t = 0; t < kPaintedFrames; ++t) {
      EXPECT_TRUE((*writer)->Write(std::span(clip).subspan(t * frame, frame)).ok());
    }
    EXPECT_TRUE((*writer)->Finish().ok());
    return path;
  }

  const fakes::TempFolder folder_;
};

TEST_F(VideoReaderTest, ReadsTheLosslessVideoExactly) {
  const std::vector<uint8_t> painted =
      Paint({.objects = {{.shape = "star", .motion = "orbit"}}, .noise = 20});
  const absl::StatusOr<Clip> clip = ReadVideo(Write(OutputKind::kLosslessMkv, "a.mkv", painted));
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->frames, kPaintedFrames);
  EXPECT_EQ(clip->width, kPaintedSize);
  EXPECT_EQ(clip->height, kPaintedSize);
  EXPECT_TRUE(clip->rgb == painted);
}

// Chroma of half the size and compression leave what the detector looks for.
TEST_F(VideoReaderTest, ReadsMp4WellEnoughForTheDetector) {
  const PaintedObject heart{.colour = "orange", .shape = "heart", .motion = "bounce"};
  const absl::StatusOr<Clip> clip =
      ReadVideo(Write(OutputKind::kMp4, "a.mp4", Paint({.objects = {heart}})));
  ASSERT_TRUE(clip.ok()) << clip.status();
  const absl::StatusOr<Sight> sight = Detect(clip->view());
  ASSERT_TRUE(sight.ok()) << sight.status();
  ASSERT_EQ(sight->objects.size(), 1u);
  EXPECT_EQ(sight->objects[0].colour, "orange");
  EXPECT_EQ(sight->objects[0].shape, "heart");
  EXPECT_EQ(sight->objects[0].motion, "bounce");
}

TEST_F(VideoReaderTest, NamesABrokenFile) {
  const std::string whole = fakes::ReadFile(Write(OutputKind::kLosslessMkv, "a.mkv", Paint({})));
  fakes::WriteFile(folder_ / "cut.mkv", whole.substr(0, 300));
  const absl::Status cut = ReadVideo((folder_ / "cut.mkv").string()).status();
  EXPECT_TRUE(absl::IsDataLoss(cut)) << cut;
  EXPECT_THAT(cut.message(), HasSubstr("cut.mkv"));

  fakes::WriteFile(folder_ / "text.mkv", "no video");
  EXPECT_THAT(ReadVideo((folder_ / "text.mkv").string()).status().message(),
              HasSubstr("text.mkv: "));
  EXPECT_THAT(ReadVideo((folder_ / "none.mkv").string()).status().message(),
              HasSubstr("none.mkv: No such file"));
}

}  // namespace
}  // namespace wan::demo
