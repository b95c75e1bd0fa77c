#include "engine/api/frame_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "engine/media/image_decode.h"
#include "tests/engine/media/video_file.h"

namespace wan {
namespace {

using testing::HasSubstr;

constexpr std::array<std::array<uint8_t, 3>, 5> kColors = {
    {{250, 10, 10}, {10, 250, 10}, {10, 10, 250}, {250, 250, 10}, {240, 240, 240}}};

FileBytes BytesOf(std::string file) {
  const size_t size = file.size();
  return {size, [file = std::move(file)](uint64_t offset, size_t most) {
            return absl::StatusOr<std::string>(file.substr(offset, most));
          }};
}

class FramePictureTest : public testing::Test {
 protected:
  ~FramePictureTest() override { std::filesystem::remove(path_); }

  // The bytes of a video with a frame of each colour.
  std::string Video(OutputKind kind) const {
    const VideoFormat format{96, 64, 24};
    auto writer = OpenVideoWriter(kind, path_, format);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const auto& color : kColors) EXPECT_TRUE((*writer)->Write(Flat(format, color)).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static RgbImage Picture(FileBytes file, const FrameGrid& grid) {
    auto picture = OpenFramePicture(std::move(file), grid);
    EXPECT_TRUE(picture.ok()) << picture.status();
    int steps = 1;
    for (; !(*picture)->Step().value(); ++steps) {
    }
    EXPECT_EQ(steps, grid.shown);
    return DecodeImage((*picture)->Jpeg().value())->image;
  }

  // Whether the pixel has nearly this colour; JPEG and YUV change it a little.
  static bool Is(const RgbImage& image, int x, int y, const std::array<uint8_t, 3>& color) {
    const size_t at = (static_cast<size_t>(y) * image.width + x) * 3;
    for (size_t i = 0; i < 3; ++i) {
      if (std::abs(image.pixels[at + i] - color[i]) > 12) return false;
    }
    return true;
  }

  const std::string path_ = testing::TempDir() + "/frame_picture_test." + std::to_string(getpid());
};

TEST_F(FramePictureTest, OneFrameIsTheFirst) {
  for (const OutputKind kind : {OutputKind::kMp4, OutputKind::kLosslessMkv}) {
    const RgbImage image = Picture(BytesOf(Video(kind)), {.frames = 5, .most_width = 48});
    EXPECT_EQ(image.width, 48);
    EXPECT_EQ(image.height, 32);
    EXPECT_TRUE(Is(image, 24, 16, kColors[0]));
  }
}

TEST_F(FramePictureTest, FramesAreNotEnlarged) {
  const RgbImage image =
      Picture(BytesOf(Video(OutputKind::kLosslessMkv)), {.frames = 5, .most_width = 480});
  EXPECT_EQ(image.width, 96);
  EXPECT_EQ(image.height, 64);
}

TEST_F(FramePictureTest, AGridHasFirstAndLastAndWhatLiesBetween) {
  for (const OutputKind kind : {OutputKind::kMp4, OutputKind::kLosslessMkv}) {
    const RgbImage image =
        Picture(BytesOf(Video(kind)), {.frames = 5, .shown = 3, .columns = 2, .most_width = 48});
    EXPECT_EQ(image.width, 96);
    EXPECT_EQ(image.height, 64);
    EXPECT_TRUE(Is(image, 24, 16, kColors[0]));
    EXPECT_TRUE(Is(image, 72, 16, kColors[2]));
    EXPECT_TRUE(Is(image, 24, 48, kColors[4]));
    EXPECT_TRUE(Is(image, 72, 48, {0, 0, 0}));  // no frame is left for this place
  }
}

TEST_F(FramePictureTest, AVideoThatIsDamagedOrTooShortIsDataLoss) {
  const std::string video = Video(OutputKind::kMp4);
  EXPECT_TRUE(absl::IsDataLoss(OpenFramePicture(BytesOf("no video"), {.most_width = 48}).status()));
  EXPECT_TRUE(absl::IsDataLoss(
      OpenFramePicture(BytesOf(video.substr(0, video.size() / 8)), {.most_width = 48}).status()));
  auto longer =
      OpenFramePicture(BytesOf(video), {.frames = 9, .shown = 2, .columns = 2, .most_width = 48});
  ASSERT_TRUE(longer.ok());
  ASSERT_TRUE((*longer)->Step().ok());
  const absl::StatusOr<bool> missing = (*longer)->Step();
  EXPECT_TRUE(absl::IsDataLoss(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("fewer frames"));
}

TEST_F(FramePictureTest, AnErrorOfTheFileIsReturnedAsItIs) {
  const auto opened = OpenFramePicture(
      {1000, [](uint64_t, size_t) { return absl::NotFoundError("it was removed"); }},
      {.most_width = 48});
  EXPECT_EQ(opened.status(), absl::NotFoundError("it was removed"));
}

TEST_F(FramePictureTest, AGridHasBounds) {
  for (const FrameGrid& grid :
       {FrameGrid{.frames = 1, .shown = 2, .most_width = 48},
        FrameGrid{.shown = 0, .most_width = 48}, FrameGrid{.columns = 2, .most_width = 48},
        FrameGrid{.most_width = 0}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(OpenFramePicture(BytesOf(""), grid).status()));
  }
}

}  // namespace
}  // namespace wan
